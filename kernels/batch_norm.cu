// Batch norm per channel, in training and in evaluation, forward and backward.
//
// Op:          batch_norm, batch_norm_backward, batch_norm_eval, batch_norm_eval_backward
// Math:        r = 1 / sqrt(var + eps), y = (x - mean) r w + b, n values a channel
//              sums G = sum(g), S = sum(g (x - mean)): gb = G, gw = S r
//              gx = w r (g - G / n - (x - mean) r^2 S / n); in evaluation gx = w r g
//              running += momentum (batch - running), with the variance times n / (n - 1)
// Layout:      x, g, y, gx alike: (N, C, L) contiguous, or (N L, C) contiguous (LAST: channels_last)
// Launch:      LAST: grid tiles * parts, tiles = ceil(C / (TX VEC)), block (TX, 256 / TX)
//              else: grid C * parts, block 256; forward_finish: grid C / 4,
//              block 512; backward_finish: grid C, block 128
// Cost:        forward 3 n C sizeof(T) bytes in training, 2 in evaluation; backward 5 and, with
//              weights, 4: bound by memory; the second pass goes backwards through what is cached
// Types:       float, __half, __nv_bfloat16 -> float; double -> double; W, R, M: T or, beside 2 bytes, float
// Determinism: bit for bit on devices of the same size: partial results per block, joined in order
// Limits:      more than 2^31 - 1 values a channel; weights or statistics of other dtypes
// Variants:    LAST or planes; parts > 1 (few channels, many values): partials and a finishing
//              kernel, else the statistics' kernel finishes each channel itself. Moments
//              that a convolution left (conv2d_sm90.cu) are finished alike
// Instances:   batch_norm_forward_moments<float, float, float, 4, false>: 48 registers, 96 bytes shared
//              batch_norm_forward_moments<float, float, float, 4, true>: 56 registers, 9216 bytes shared
//              batch_norm_forward_moments<float, float, float, 1, false>: 40 registers, 96 bytes shared
//              batch_norm_forward_moments<float, float, float, 1, true>: 56 registers, 3072 bytes shared
//              batch_norm_forward_moments<__half, float, float, 8, false>: 48 registers, 96 bytes shared
//              batch_norm_forward_moments<__half, __half, float, 8, true>: 80 registers, 17408 bytes shared
//              batch_norm_forward_moments<__nv_bfloat16, __nv_bfloat16, float, 8, true>: 80 registers, 17408 bytes shared
//              batch_norm_forward_moments<__nv_bfloat16, float, float, 2, false>: 40 registers, 96 bytes shared
//              batch_norm_forward_moments<double, double, double, 2, false>: 56 registers, 192 bytes shared
//              batch_norm_forward_moments<double, double, double, 2, true>: 112 registers, 10240 bytes shared
//              batch_norm_forward_finish<float, float>: 128 registers, 768 bytes shared
//              batch_norm_forward_finish<__half, float>: 128 registers, 768 bytes shared
//              batch_norm_forward_finish<__nv_bfloat16, float>: 128 registers, 768 bytes shared
//              batch_norm_forward_finish<double, double>: 104 registers, 1536 bytes shared
//              batch_norm_forward<float, float, float, float, 4, false>: 48 registers, 0 bytes shared
//              batch_norm_forward<float, float, float, float, 4, true>: 64 registers, 0 bytes shared
//              batch_norm_forward<float, float, float, float, 1, false>: 56 registers, 0 bytes shared
//              batch_norm_forward<__half, float, float, float, 8, true>: 56 registers, 0 bytes shared
//              batch_norm_forward<__half, __half, __half, float, 8, false>: 56 registers, 0 bytes shared
//              batch_norm_forward<__nv_bfloat16, __nv_bfloat16, float, float, 8, true>: 64 registers, 0 bytes shared
//              batch_norm_forward<double, double, double, double, 2, false>: 56 registers, 0 bytes shared
//              batch_norm_forward<double, double, double, double, 2, true>: 80 registers, 0 bytes shared
//              batch_norm_backward_sums<float, float, float, 4, false>: 80 registers, 32 bytes shared
//              batch_norm_backward_sums<float, float, float, 4, true>: 96 registers, 8192 bytes shared
//              batch_norm_backward_sums<float, float, float, 1, false>: 72 registers, 32 bytes shared
//              batch_norm_backward_sums<__half, float, float, 8, true>: 104 registers, 16384 bytes shared
//              batch_norm_backward_sums<__half, __half, float, 8, false>: 80 registers, 32 bytes shared
//              batch_norm_backward_sums<__nv_bfloat16, __nv_bfloat16, float, 8, true>: 128 registers, 16384 bytes shared
//              batch_norm_backward_sums<double, double, double, 2, false>: 80 registers, 64 bytes shared
//              batch_norm_backward_sums<double, double, double, 2, true>: 88 registers, 8192 bytes shared
//              batch_norm_backward_finish<float, float>: 32 registers, 16 bytes shared
//              batch_norm_backward_finish<__half, float>: 32 registers, 16 bytes shared
//              batch_norm_backward_finish<__nv_bfloat16, float>: 32 registers, 16 bytes shared
//              batch_norm_backward_finish<double, double>: 32 registers, 32 bytes shared
//              batch_norm_backward<float, float, float, 4, false, true>: 80 registers, 0 bytes shared
//              batch_norm_backward<float, float, float, 4, true, true>: 96 registers, 0 bytes shared
//              batch_norm_backward<float, float, float, 1, false, false>: 56 registers, 0 bytes shared
//              batch_norm_backward<__half, __half, float, 8, false, true>: 56 registers, 0 bytes shared
//              batch_norm_backward<__half, float, float, 8, true, false>: 64 registers, 0 bytes shared
//              batch_norm_backward<__nv_bfloat16, __nv_bfloat16, float, 8, true, true>: 96 registers, 0 bytes shared
//              batch_norm_backward<double, double, double, 2, false, true>: 88 registers, 0 bytes shared
//              batch_norm_backward<double, double, double, 2, true, true>: 96 registers, 0 bytes shared
// Source:      Ioffe and Szegedy, "Batch normalization" (2015); Chan et al., "Updating formulae and
//              a pairwise algorithm for computing sample variances" (1979)
// Measured:    NVIDIA H200, 128x64x32x32, 2026-11-23, forward / backward in us: float32 31.0 (3.25 TB/s,
//              82 % of a copy) / 47.7 (3.52 TB/s, 89 %), channels_last 32.3 / 48.6; bfloat16 17.2 / 24.6,
//              channels_last 21.8 / 29.7. Moments of 512x64x32x32 in bfloat16: 22 us; means and squares
//              joined for each two or four packs of a thread 26 and 33; 4 or 6 blocks a multiprocessor
//              30 and 27; sums of its gradient with 3 blocks a multiprocessor 44 where 2 take 38

#include "common.cuh"
#include "channels.cuh"
#include "moments.cuh"

// -------------------------------------------------------------------------- device helpers

// What one channel's moments mean for the outputs; the running statistics may be null.
template <typename A, typename R>
__device__ __forceinline__ void write_statistics(int64_t channel, const Moments<A>& m, A unbiased,
                                                 A momentum, R* running_mean, R* running_var,
                                                 A* mean, A* variance) {
  const A v = m.square / m.count;
  mean[channel] = m.mean;
  variance[channel] = v;
  if (running_mean) {
    const A old = widen(running_mean[channel]);
    running_mean[channel] = narrow<R>(old + (m.mean - old) * momentum);
  }
  if (running_var) {
    const A old = widen(running_var[channel]);
    running_var[channel] = narrow<R>(old + (v * unbiased - old) * momentum);
  }
}

// What one channel's sums of g and of g (x - mean) mean; sums, gw and gb may be null.
template <typename A, typename W>
__device__ __forceinline__ void write_sums(int64_t channel, int64_t channels, A total, A slope,
                                           const A* variance, A eps, A* sums, W* gw, W* gb) {
  if (sums) {
    sums[channel] = total;
    sums[channels + channel] = slope;
  }
  if (gw) gw[channel] = narrow<W>(slope / square_root(variance[channel] + eps));
  if (gb) gb[channel] = narrow<W>(total);
}

// The sum over the threads of a block of 512 that differ by a multiple of four; each gets it.
template <typename A>
__device__ __forceinline__ void sum_over_channels(A& x, A (&shared)[16][4]) {
#pragma unroll
  for (int step = 16; step >= 4; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  const int own = threadIdx.x % 4, lane = threadIdx.x % 32;
  if (lane < 4) shared[threadIdx.x / 32][own] = x;
  __syncthreads();
  x = shared[lane / 4][own] + shared[lane / 4 + 8][own];
#pragma unroll
  for (int step = 16; step >= 4; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
}

// Packs whose deviations from the mean of those before are summed up before it is corrected: the
// sums of squares cancel by no more than a few times what the mean has moved.
constexpr int CHUNK = 32;

// -------------------------------------------------------------------------- kernels

// partials: (3, parts, C) moments; with one part the statistics are written instead.
template <typename T, typename R, typename A, int VEC, bool LAST>
__global__ void __launch_bounds__(256, 2)
    batch_norm_forward_moments(const T* __restrict__ x, int64_t channels, uint32_t count,
                               uint32_t length, uint32_t parts, uint32_t chunk, A unbiased,
                               A momentum, R* __restrict__ running_mean,
                               R* __restrict__ running_var, A* __restrict__ mean,
                               A* __restrict__ variance, A* __restrict__ partials) {
  constexpr int depth = READ<VEC>, columns = LAST ? VEC : 1, each = VEC / columns;
  __shared__ A shared[LAST ? (2 * VEC + 1) * 256 : 24];
  Walk<LAST, VEC> walk(blockIdx.x, channels, count, length, parts, chunk);
  A seen = 0, means[columns] = {}, squares[columns] = {};  // of the chunks before
  A sums[columns] = {}, products[columns] = {};  // of a chunk, of deviations from those means
  uint32_t packs = 0;                            // of a chunk
  const auto take = [&](const Pack<T, VEC>& raw) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const int k = LAST ? j : 0;
      const A step = widen(raw[j]) - means[k];
      sums[k] += step;
      products[k] += step * step;
    }
  };
  const auto join = [&] {
    const A fresh = A(packs * each), share = fresh / (seen + fresh), inverse = A(1) / fresh;
#pragma unroll
    for (int k = 0; k < columns; ++k) {
      const A apart = sums[k] * inverse;
      squares[k] += (products[k] - sums[k] * apart) + apart * apart * seen * share;
      means[k] += apart * share;
      sums[k] = products[k] = A(0);
    }
    seen += fresh;
    packs = 0;
  };
  uint32_t done = 0;
  for (; done + depth <= walk.left; done += depth) {
    Pack<T, VEC> raw[depth];
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      raw[d] = load<VEC>(x + walk.offset);
      walk.advance();
    }
    if (done == 0) {  // any of the values serves as the first mean
#pragma unroll
      for (int k = 0; k < columns; ++k) means[k] = widen(raw[0][k]);
    }
#pragma unroll
    for (int d = 0; d < depth; ++d) take(raw[d]);
    packs += depth;
    if (packs == CHUNK) join();
  }
  for (; done < walk.left; ++done) {
    const Pack<T, VEC> raw = load<VEC>(x + walk.offset);
    walk.advance();
    if (done == 0) {
#pragma unroll
      for (int k = 0; k < columns; ++k) means[k] = widen(raw[k]);
    }
    take(raw);
    ++packs;
  }
  if (packs > 0) join();

  const auto write = [&](int64_t channel, const Moments<A>& m) {
    if (parts == 1) {
      write_statistics(channel, m, unbiased, momentum, running_mean, running_var, mean, variance);
    } else {
      const int64_t plane = parts * channels;
      A* to = partials + walk.part * channels + channel;
      to[0] = m.count;
      to[plane] = m.mean;
      to[2 * plane] = m.square;
    }
  };
  if constexpr (LAST) {
    const int me = threadIdx.y * blockDim.x + threadIdx.x;
    A* counts = shared + 2 * VEC * 256;
    for (int half = blockDim.y / 2;; half /= 2) {
      counts[me] = seen;
#pragma unroll
      for (int k = 0; k < columns; ++k) {
        shared[k * 256 + me] = means[k];
        shared[(VEC + k) * 256 + me] = squares[k];
      }
      __syncthreads();
      if (half == 0) break;
      if (threadIdx.y < half) {
        const int other = me + half * blockDim.x;
        A both = seen;
#pragma unroll
        for (int k = 0; k < columns; ++k) {
          const Moments<A> m = joined<A>(
              {seen, means[k], squares[k]},
              {counts[other], shared[k * 256 + other], shared[(VEC + k) * 256 + other]});
          both = m.count;
          means[k] = m.mean;
          squares[k] = m.square;
        }
        seen = both;
      }
      __syncthreads();
    }
    if (threadIdx.y == 0) {
#pragma unroll
      for (int k = 0; k < columns; ++k) {
        if (walk.channel + k < channels) {
          write(walk.channel + k, {seen, means[k], squares[k]});
        }
      }
    }
  } else {
    const Moments<A> m = block_joined<256>(Moments<A>{seen, means[0], squares[0]}, shared);
    if (threadIdx.x == 0) write(walk.channel, m);
  }
}

// partials: (3, parts, C) counts, means and sums of squared deviations, of four channels a block.
template <typename R, typename A>
__global__ void __launch_bounds__(512, 1)
    batch_norm_forward_finish(const A* __restrict__ partials, int64_t channels, int parts,
                              A unbiased, A momentum, R* __restrict__ running_mean,
                              R* __restrict__ running_var, A* __restrict__ mean,
                              A* __restrict__ variance) {
  constexpr int depth = sizeof(A) == 4 ? 9 : 4, rows = 512 / 4;
  __shared__ A shared[3][16][4];
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * 4 + threadIdx.x % 4;
  const int64_t plane = parts * channels;
  const bool inside = channel < channels;
  const A* const from = partials + (inside ? channel : 0);
  const A base = from[plane];
  // Sums of the deviations of the means from that of the first part, and what is kept for theirs.
  A count = 0, sum = 0, square = 0, counts[depth], steps[depth];
  const auto fetch = [&](int first) {
    A squares[depth];
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      const int part = first + d * rows;
      const bool there = inside && part < parts;
      const A* const at = from + part * channels;
      counts[d] = there ? at[0] : A(0);
      steps[d] = there ? at[plane] : A(0);
      squares[d] = there ? at[2 * plane] : A(0);
    }
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      steps[d] -= base;
      count += counts[d];
      sum += counts[d] * steps[d];
      square += squares[d];
    }
  };
  const int mine = threadIdx.x / 4;
#pragma unroll 1
  for (int first = mine + depth * rows; first < parts; first += depth * rows) fetch(first);
  fetch(mine);
  sum_over_channels(count, shared[0]);
  sum_over_channels(sum, shared[1]);
  const A middle = sum / count;
#pragma unroll
  for (int d = 0; d < depth; ++d) {
    square += counts[d] * (steps[d] - middle) * (steps[d] - middle);
  }
#pragma unroll 1
  for (int part = mine + depth * rows; inside && part < parts; part += rows) {
    const A step = from[plane + part * channels] - base - middle;
    square += from[part * channels] * step * step;
  }
  sum_over_channels(square, shared[2]);
  if (inside && threadIdx.x < 4) {
    write_statistics(channel, Moments<A>{count, base + middle, square}, unbiased, momentum,
                     running_mean, running_var, mean, variance);
  }
}

// y for given statistics; w and b may be null.
template <typename T, typename W, typename M, typename A, int VEC, bool LAST>
__global__ void __launch_bounds__(256, 2)
    batch_norm_forward(const T* __restrict__ x, const W* __restrict__ w, const W* __restrict__ b,
                       const M* __restrict__ mean, const M* __restrict__ variance, A eps,
                       int64_t channels, uint32_t count, uint32_t length, uint32_t parts,
                       uint32_t chunk, T* __restrict__ y) {
  constexpr int depth = DEPTH<VEC>, columns = LAST ? VEC : 1;
  Walk<LAST, VEC> walk(gridDim.x - 1 - blockIdx.x, channels, count, length, parts, chunk);
  if (walk.left == 0) return;
  A middle[columns], scale[columns], shift[columns];
#pragma unroll
  for (int k = 0; k < columns; ++k) {
    const int64_t channel = walk.channel + k;
    middle[k] = widen(mean[channel]);
    scale[k] = A(1) / square_root(A(widen(variance[channel])) + eps);
    if (w) scale[k] *= A(widen(w[channel]));
    shift[k] = b ? A(widen(b[channel])) : A(0);
  }
  for (uint32_t done = 0; done < walk.left; done += depth) {
    Pack<T, VEC> raw[depth];
    int64_t at[depth];
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      at[d] = walk.offset;
      if (done + d < walk.left) raw[d] = load<VEC>(x + at[d]);
      walk.advance();
    }
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      if (done + d < walk.left) {
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
          const int k = LAST ? j : 0;
          raw[d][j] = narrow<T>((widen(raw[d][j]) - middle[k]) * scale[k] + shift[k]);
        }
        store(y + at[d], raw[d]);
      }
    }
  }
}

// partials: (C, parts, 2), the sums of g and of g (x - mean); with one part the results.
template <typename T, typename W, typename A, int VEC, bool LAST>
__global__ void __launch_bounds__(256, 2)
    batch_norm_backward_sums(const T* __restrict__ g, const T* __restrict__ x,
                             const A* __restrict__ mean, const A* __restrict__ variance, A eps,
                             int64_t channels, uint32_t count, uint32_t length, uint32_t parts,
                             uint32_t chunk, A* __restrict__ sums, W* __restrict__ gw,
                             W* __restrict__ gb, A* __restrict__ partials) {
  constexpr int depth = READ<VEC>, columns = LAST ? VEC : 1;
  __shared__ A shared[LAST ? 2 * VEC * 256 : 8];
  Walk<LAST, VEC> walk(blockIdx.x, channels, count, length, parts, chunk);
  A middle[columns], totals[columns] = {}, slopes[columns] = {};
#pragma unroll
  for (int k = 0; k < columns; ++k) {
    middle[k] = walk.channel + k < channels ? mean[walk.channel + k] : A(0);
  }
  for (uint32_t done = 0; done < walk.left; done += depth) {
    Pack<T, VEC> raw_g[depth], raw_x[depth];
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      if (done + d < walk.left) {
        raw_g[d] = load<VEC>(g + walk.offset);
        raw_x[d] = load<VEC>(x + walk.offset);
      }
      walk.advance();
    }
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      if (done + d < walk.left) {
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
          const int k = LAST ? j : 0;
          const A gy = widen(raw_g[d][j]);
          totals[k] += gy;
          slopes[k] += gy * (widen(raw_x[d][j]) - middle[k]);
        }
      }
    }
  }

  const auto write = [&](int64_t channel, A total, A slope) {
    if (parts == 1) {
      write_sums(channel, channels, total, slope, variance, eps, sums, gw, gb);
    } else {
      A* to = partials + (channel * parts + walk.part) * 2;
      to[0] = total;
      to[1] = slope;
    }
  };
  if constexpr (LAST) {
    const int me = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < columns; ++k) {
      shared[k * 256 + me] = totals[k];
      shared[(VEC + k) * 256 + me] = slopes[k];
    }
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.y < half) {
        const int other = me + half * blockDim.x;
#pragma unroll
        for (int k = 0; k < 2 * VEC; ++k) shared[k * 256 + me] += shared[k * 256 + other];
      }
    }
    if (threadIdx.y == 0) {  // what it reads, it has written itself
#pragma unroll
      for (int k = 0; k < columns; ++k) {
        if (walk.channel + k < channels) {
          write(walk.channel + k, shared[k * 256 + me], shared[(VEC + k) * 256 + me]);
        }
      }
    }
  } else {
    const A total = block_reduce<Sum, 256>(totals[0], A(0), shared);
    const A slope = block_reduce<Sum, 256>(slopes[0], A(0), shared);
    if (threadIdx.x == 0) write(walk.channel, total, slope);
  }
}

template <typename W, typename A>
__global__ void __launch_bounds__(128)
    batch_norm_backward_finish(const A* __restrict__ partials, const A* __restrict__ variance,
                               A eps, int64_t channels, int64_t parts, A* __restrict__ sums,
                               W* __restrict__ gw, W* __restrict__ gb) {
  __shared__ A shared[4];
  const int64_t channel = blockIdx.x;
  A total = 0, slope = 0;
  for (int64_t part = threadIdx.x; part < parts; part += 128) {
    const A* from = partials + (channel * parts + part) * 2;
    total += from[0];
    slope += from[1];
  }
  total = block_reduce<Sum, 128>(total, A(0), shared);
  slope = block_reduce<Sum, 128>(slope, A(0), shared);
  if (threadIdx.x == 0) {
    write_sums(channel, channels, total, slope, variance, eps, sums, gw, gb);
  }
}

// gx; `sums` are the two of the pass before, `inverse` is 1 / n. Without TRAINING neither they nor
// x and mean are read. w may be null.
template <typename T, typename W, typename A, int VEC, bool LAST, bool TRAINING>
__global__ void __launch_bounds__(256, 2)
    batch_norm_backward(const T* __restrict__ g, const T* __restrict__ x,
                        const W* __restrict__ w, const A* __restrict__ mean,
                        const A* __restrict__ variance, const A* __restrict__ sums, A eps,
                        A inverse, int64_t channels, uint32_t count, uint32_t length,
                        uint32_t parts, uint32_t chunk, T* __restrict__ gx) {
  constexpr int depth = DEPTH<VEC>, columns = LAST ? VEC : 1;
  Walk<LAST, VEC> walk(gridDim.x - 1 - blockIdx.x, channels, count, length, parts, chunk);
  if (walk.left == 0) return;
  A middle[columns] = {}, scale[columns], shift[columns] = {}, slope[columns] = {};
#pragma unroll
  for (int k = 0; k < columns; ++k) {
    const int64_t channel = walk.channel + k;
    const A r = A(1) / square_root(variance[channel] + eps);
    scale[k] = w ? r * A(widen(w[channel])) : r;
    if constexpr (TRAINING) {
      middle[k] = mean[channel];
      shift[k] = sums[channel] * inverse;
      slope[k] = r * r * sums[channels + channel] * inverse;
    }
  }
  for (uint32_t done = 0; done < walk.left; done += depth) {
    Pack<T, VEC> raw_g[depth], raw_x[depth];
    int64_t at[depth];
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      at[d] = walk.offset;
      if (done + d < walk.left) {
        raw_g[d] = load<VEC>(g + at[d]);
        if constexpr (TRAINING) raw_x[d] = load<VEC>(x + at[d]);
      }
      walk.advance();
    }
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      if (done + d < walk.left) {
        Pack<T, VEC> out;
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
          const int k = LAST ? j : 0;
          A gy = widen(raw_g[d][j]);
          if constexpr (TRAINING) {
            gy -= shift[k] + (widen(raw_x[d][j]) - middle[k]) * slope[k];
          }
          out[j] = narrow<T>(gy * scale[k]);
        }
        store(gx + at[d], out);
      }
    }
  }
}
