// Batch norm per channel, in training and in evaluation, forward and backward.
//
// Op:          batch_norm, batch_norm_backward, batch_norm_eval, batch_norm_eval_backward; batch_norm_relu,
//              batch_norm_relu_backward, batch_norm_add_relu, batch_norm_add_relu_backward
// Math:        r = 1 / sqrt(var + eps), y = (x - mean) r w + b, n values a channel
//              sums G = sum(g), S = sum(g (x - mean)): gb = G, gw = S r
//              gx = w r (g - G / n - (x - mean) r^2 S / n); in evaluation gx = w r g
//              relu: y = max(0, ...), g counts where y > 0; add: a residual is added before that
//              running += momentum (batch - running), with the variance times n / (n - 1)
// Layout:      x, g, y, gx alike: (N, C, L) contiguous, or (N L, C) contiguous (LAST: channels_last)
// Launch:      LAST: grid tiles * parts, tiles = ceil(C / (TX VEC)), block (TX, 256 / TX)
//              else: grid C * parts, block 256; finish: grid C, block 128
// Cost:        forward 3 n C sizeof(T) bytes in training, 2 in evaluation; backward 5 and, with
//              weights, 4; add_relu 4 and 7: bound by memory; the second pass goes backwards through what is cached
// Types:       float, __half, __nv_bfloat16 -> float; double -> double; W, R, M: T or, beside 2 bytes, float
// Determinism: bit for bit on devices of the same size: partial results per block, joined in order
// Limits:      more than 2^31 - 1 values a channel; weights or statistics of other dtypes
// Variants:    LAST or planes; parts > 1 (few channels, many values): partials and a finishing
//              kernel, else the statistics' kernel finishes each channel itself. THEN: RELU asks x,
//              w and b again whether y > 0; ADD_RELU reads y, and keeps what it lets through
// Instances:   batch_norm_forward_moments<float, float, float, 4, false>: 56 registers, 96 bytes shared
//              batch_norm_forward_moments<float, float, float, 4, true>: 64 registers, 9216 bytes shared
//              batch_norm_forward_moments<float, float, float, 1, false>: 56 registers, 96 bytes shared
//              batch_norm_forward_moments<float, float, float, 1, true>: 48 registers, 3072 bytes shared
//              batch_norm_forward_moments<__half, float, float, 8, false>: 64 registers, 96 bytes shared
//              batch_norm_forward_moments<__half, __half, float, 8, true>: 96 registers, 17408 bytes shared
//              batch_norm_forward_moments<__nv_bfloat16, __nv_bfloat16, float, 8, true>: 120 registers, 17408 bytes shared
//              batch_norm_forward_moments<__nv_bfloat16, float, float, 2, false>: 56 registers, 96 bytes shared
//              batch_norm_forward_moments<double, double, double, 2, false>: 72 registers, 192 bytes shared
//              batch_norm_forward_moments<double, double, double, 2, true>: 72 registers, 10240 bytes shared
//              batch_norm_forward_finish<float, float>: 32 registers, 48 bytes shared
//              batch_norm_forward_finish<__half, float>: 32 registers, 48 bytes shared
//              batch_norm_forward_finish<__nv_bfloat16, float>: 32 registers, 48 bytes shared
//              batch_norm_forward_finish<double, double>: 48 registers, 96 bytes shared
//              batch_norm_forward<float, float, float, float, 4, false, 0>: 48 registers, 0 bytes shared
//              batch_norm_forward<float, float, float, float, 4, true, 0>: 64 registers, 0 bytes shared
//              batch_norm_forward<float, float, float, float, 1, false, 0>: 56 registers, 0 bytes shared
//              batch_norm_forward<__half, float, float, float, 8, true, 0>: 72 registers, 0 bytes shared
//              batch_norm_forward<__half, __half, __half, float, 8, false, 0>: 56 registers, 0 bytes shared
//              batch_norm_forward<__nv_bfloat16, __nv_bfloat16, float, float, 8, true, 0>: 80 registers, 0 bytes shared
//              batch_norm_forward<double, double, double, double, 2, false, 0>: 56 registers, 0 bytes shared
//              batch_norm_forward<double, double, double, double, 2, true, 0>: 80 registers, 0 bytes shared
//              batch_norm_forward<float, float, float, float, 4, true, 1>: 64 registers, 0 bytes shared
//              batch_norm_forward<float, float, float, float, 4, true, 2>: 96 registers, 0 bytes shared
//              batch_norm_forward<float, float, float, float, 4, false, 2>: 80 registers, 0 bytes shared
//              batch_norm_forward<__nv_bfloat16, float, float, float, 8, true, 2>: 88 registers, 0 bytes shared
//              batch_norm_backward_sums<float, float, float, 4, false, 0>: 80 registers, 32 bytes shared
//              batch_norm_backward_sums<float, float, float, 4, true, 0>: 96 registers, 8192 bytes shared
//              batch_norm_backward_sums<float, float, float, 1, false, 0>: 72 registers, 32 bytes shared
//              batch_norm_backward_sums<__half, float, float, 8, true, 0>: 104 registers, 16384 bytes shared
//              batch_norm_backward_sums<__half, __half, float, 8, false, 0>: 56 registers, 32 bytes shared
//              batch_norm_backward_sums<__nv_bfloat16, __nv_bfloat16, float, 8, true, 0>: 128 registers, 16384 bytes shared
//              batch_norm_backward_sums<double, double, double, 2, false, 0>: 80 registers, 64 bytes shared
//              batch_norm_backward_sums<double, double, double, 2, true, 0>: 88 registers, 8192 bytes shared
//              batch_norm_backward_sums<float, float, float, 4, true, 1>: 96 registers, 8192 bytes shared
//              batch_norm_backward_sums<float, float, float, 4, true, 2>: 128 registers, 8192 bytes shared
//              batch_norm_backward_sums<float, float, float, 4, false, 2>: 128 registers, 32 bytes shared
//              batch_norm_backward_sums<__nv_bfloat16, float, float, 8, true, 1>: 128 registers, 16384 bytes shared
//              batch_norm_backward_sums<__nv_bfloat16, float, float, 8, true, 2>: 128 registers, 16384 bytes shared
//              batch_norm_backward_finish<float, float>: 32 registers, 16 bytes shared
//              batch_norm_backward_finish<__half, float>: 32 registers, 16 bytes shared
//              batch_norm_backward_finish<__nv_bfloat16, float>: 32 registers, 16 bytes shared
//              batch_norm_backward_finish<double, double>: 32 registers, 32 bytes shared
//              batch_norm_backward<float, float, float, 4, false, true, 0>: 88 registers, 0 bytes shared
//              batch_norm_backward<float, float, float, 4, true, true, 0>: 96 registers, 0 bytes shared
//              batch_norm_backward<float, float, float, 1, false, false, 0>: 56 registers, 0 bytes shared
//              batch_norm_backward<__half, __half, float, 8, false, true, 0>: 56 registers, 0 bytes shared
//              batch_norm_backward<__half, float, float, 8, true, false, 0>: 64 registers, 0 bytes shared
//              batch_norm_backward<__nv_bfloat16, __nv_bfloat16, float, 8, true, true, 0>: 96 registers, 0 bytes shared
//              batch_norm_backward<double, double, double, 2, false, true, 0>: 88 registers, 0 bytes shared
//              batch_norm_backward<double, double, double, 2, true, true, 0>: 96 registers, 0 bytes shared
//              batch_norm_backward<float, float, float, 4, true, true, 1>: 96 registers, 0 bytes shared
//              batch_norm_backward<float, float, float, 4, false, true, 1>: 88 registers, 0 bytes shared
//              batch_norm_backward<__nv_bfloat16, float, float, 8, true, true, 1>: 128 registers, 0 bytes shared
// Source:      Ioffe and Szegedy, "Batch normalization" (2015); Chan et al., "Updating formulae and
//              a pairwise algorithm for computing sample variances" (1979)
// Measured:    NVIDIA H200, 128x64x32x32 float32, 2026-11-23: forward 31.0 us, 3.25 TB/s, 82 % of a
//              copy; backward 48.1 us, 3.48 TB/s, 88 %. 512x64x32x32 LAST: 114 and 194 us; relu 113 and
//              168, add_relu 140 and 233, 3.5 to 4.0 TB/s

#include "common.cuh"
#include "moments.cuh"
#include "batch_norm.cuh"

// -------------------------------------------------------------------------- device helpers

// What follows a normalisation in its kernels.
constexpr int NOTHING = 0, RELU = 1, ADD_RELU = 2;

// What a channel's values are normalised with; w and b may be null. The gradient asks with the same
// operations whether a value came through the ReLU.
template <typename A>
struct Affine {
  A middle, scale, shift;
  template <typename M, typename W>
  __device__ __forceinline__ void read(int64_t channel, const M* mean, const M* variance, A eps,
                                       const W* w, const W* b) {
    middle = widen(mean[channel]);
    scale = A(1) / square_root(A(widen(variance[channel])) + eps);
    if (w) scale *= A(widen(w[channel]));
    shift = b ? A(widen(b[channel])) : A(0);
  }
  __device__ __forceinline__ A of(A x) const { return fma(x - middle, scale, shift); }
};

// The gradient that a ReLU lets through which gave `y`; NaN lets it through.
template <typename T>
__device__ __forceinline__ acc_t<T> through(T y, acc_t<T> g) {
  return widen(y) <= acc_t<T>(0) ? acc_t<T>(0) : g;
}

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

// -------------------------------------------------------------------------- kernels

// partials: (C, parts, 3) moments; with one part the statistics are written instead.
template <typename T, typename R, typename A, int VEC, bool LAST>
__global__ void __launch_bounds__(256, 2)
    batch_norm_forward_moments(const T* __restrict__ x, int64_t channels, uint32_t count,
                               uint32_t length, uint32_t parts, uint32_t chunk, A unbiased,
                               A momentum, R* __restrict__ running_mean,
                               R* __restrict__ running_var, A* __restrict__ mean,
                               A* __restrict__ variance, A* __restrict__ partials) {
  constexpr int depth = Depth<VEC, LAST>::value, columns = LAST ? VEC : 1, each = VEC / columns;
  __shared__ A shared[LAST ? (2 * VEC + 1) * 256 : 24];
  Walk<LAST, VEC> walk(blockIdx.x, channels, count, length, parts, chunk);
  A seen = 0, means[columns] = {}, squares[columns] = {};
  for (uint32_t done = 0; done < walk.left; done += depth) {
    Pack<T, VEC> raw[depth];
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      if (done + d < walk.left) raw[d] = load<VEC>(x + walk.offset);
      walk.advance();
    }
    const int packs = walk.left - done < depth ? walk.left - done : depth;
    const A fresh = A(packs * each), inverse = A(1) / fresh, share = fresh / (seen + fresh);
    A values[depth][VEC], sums[columns] = {}, deviations[columns] = {};
#pragma unroll
    for (int d = 0; d < depth; ++d) {
#pragma unroll
      for (int j = 0; j < VEC; ++j) {
        values[d][j] = d < packs ? widen(raw[d][j]) : A(0);
        sums[LAST ? j : 0] += values[d][j];
      }
    }
#pragma unroll
    for (int k = 0; k < columns; ++k) sums[k] *= inverse;
#pragma unroll
    for (int d = 0; d < depth; ++d) {
#pragma unroll
      for (int j = 0; j < VEC; ++j) {
        const A step = d < packs ? values[d][j] - sums[LAST ? j : 0] : A(0);
        deviations[LAST ? j : 0] += step * step;
      }
    }
#pragma unroll
    for (int k = 0; k < columns; ++k) {
      const A step = sums[k] - means[k];
      means[k] += step * share;
      squares[k] += deviations[k] + step * step * seen * share;
    }
    seen += fresh;
  }

  const auto write = [&](int64_t channel, const Moments<A>& m) {
    if (parts == 1) {
      write_statistics(channel, m, unbiased, momentum, running_mean, running_var, mean, variance);
    } else {
      A* to = partials + (channel * parts + walk.part) * 3;
      to[0] = m.count;
      to[1] = m.mean;
      to[2] = m.square;
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

template <typename R, typename A>
__global__ void __launch_bounds__(128)
    batch_norm_forward_finish(const A* __restrict__ partials, int64_t parts, A unbiased,
                              A momentum, R* __restrict__ running_mean,
                              R* __restrict__ running_var, A* __restrict__ mean,
                              A* __restrict__ variance) {
  __shared__ A shared[12];
  const int64_t channel = blockIdx.x;
  Moments<A> m = {A(0), A(0), A(0)};
  for (int64_t part = threadIdx.x; part < parts; part += 128) {
    const A* from = partials + (channel * parts + part) * 3;
    m = joined(m, Moments<A>{from[0], from[1], from[2]});
  }
  m = block_joined<128>(m, shared);
  if (threadIdx.x == 0) {
    write_statistics(channel, m, unbiased, momentum, running_mean, running_var, mean, variance);
  }
}

// y for given statistics; w and b may be null. `residual` is what ADD_RELU adds.
template <typename T, typename W, typename M, typename A, int VEC, bool LAST, int THEN>
__global__ void __launch_bounds__(256, 2)
    batch_norm_forward(const T* __restrict__ x, const T* __restrict__ residual,
                       const W* __restrict__ w, const W* __restrict__ b,
                       const M* __restrict__ mean, const M* __restrict__ variance, A eps,
                       int64_t channels, uint32_t count, uint32_t length, uint32_t parts,
                       uint32_t chunk, T* __restrict__ y) {
  constexpr int depth = Depth<VEC>::value, columns = LAST ? VEC : 1;
  Walk<LAST, VEC> walk(gridDim.x - 1 - blockIdx.x, channels, count, length, parts, chunk);
  if (walk.left == 0) return;
  Affine<A> affine[columns];
#pragma unroll
  for (int k = 0; k < columns; ++k) affine[k].read(walk.channel + k, mean, variance, eps, w, b);
  for (uint32_t done = 0; done < walk.left; done += depth) {
    Pack<T, VEC> raw[depth], added[depth];
    int64_t at[depth];
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      at[d] = walk.offset;
      if (done + d < walk.left) {
        raw[d] = load<VEC>(x + at[d]);
        if constexpr (THEN == ADD_RELU) added[d] = load<VEC>(residual + at[d]);
      }
      walk.advance();
    }
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      if (done + d < walk.left) {
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
          A value = affine[LAST ? j : 0].of(widen(raw[d][j]));
          if constexpr (THEN == ADD_RELU) value += widen(added[d][j]);
          if constexpr (THEN != NOTHING) value = value < A(0) ? A(0) : value;  // NaN stays
          raw[d][j] = narrow<T>(value);
        }
        store(y + at[d], raw[d]);
      }
    }
  }
}

// partials: (C, parts, 2), the sums of g and of g (x - mean); with one part the results. After RELU
// g counts where w and b make x positive; after ADD_RELU where y is, and that goes into `passed`.
template <typename T, typename W, typename A, int VEC, bool LAST, int THEN>
__global__ void __launch_bounds__(256, 2)
    batch_norm_backward_sums(const T* __restrict__ g, const T* __restrict__ x,
                             const T* __restrict__ y, const W* __restrict__ w,
                             const W* __restrict__ b, const A* __restrict__ mean,
                             const A* __restrict__ variance, A eps, int64_t channels,
                             uint32_t count, uint32_t length, uint32_t parts, uint32_t chunk,
                             T* __restrict__ passed, A* __restrict__ sums, W* __restrict__ gw,
                             W* __restrict__ gb, A* __restrict__ partials) {
  constexpr int depth = Depth<VEC, LAST && THEN != ADD_RELU>::value, columns = LAST ? VEC : 1;
  __shared__ A shared[LAST ? 2 * VEC * 256 : 8];
  Walk<LAST, VEC> walk(blockIdx.x, channels, count, length, parts, chunk);
  Affine<A> affine[columns] = {};
  A totals[columns] = {}, slopes[columns] = {};
#pragma unroll
  for (int k = 0; k < columns; ++k) {
    const int64_t channel = walk.channel + k;
    if (channel >= channels) continue;
    if constexpr (THEN == RELU) {
      affine[k].read(channel, mean, variance, eps, w, b);
    } else {
      affine[k].middle = mean[channel];
    }
  }
  for (uint32_t done = 0; done < walk.left; done += depth) {
    Pack<T, VEC> raw_g[depth], raw_x[depth], raw_y[depth];
    int64_t at[depth];
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      at[d] = walk.offset;
      if (done + d < walk.left) {
        raw_g[d] = load<VEC>(g + at[d]);
        raw_x[d] = load<VEC>(x + at[d]);
        if constexpr (THEN == ADD_RELU) raw_y[d] = load<VEC>(y + at[d]);
      }
      walk.advance();
    }
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      if (done + d < walk.left) {
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
          const int k = LAST ? j : 0;
          const A value = widen(raw_x[d][j]);
          A gy = widen(raw_g[d][j]);
          if constexpr (THEN == RELU) gy = through(narrow<T>(affine[k].of(value)), gy);
          if constexpr (THEN == ADD_RELU) {
            gy = through(raw_y[d][j], gy);
            raw_g[d][j] = narrow<T>(gy);
          }
          totals[k] += gy;
          slopes[k] += gy * (value - affine[k].middle);
        }
        if constexpr (THEN == ADD_RELU) store(passed + at[d], raw_g[d]);
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
// x and mean are read. w and b may be null; b is read after RELU only.
template <typename T, typename W, typename A, int VEC, bool LAST, bool TRAINING, int THEN>
__global__ void __launch_bounds__(256, 2)
    batch_norm_backward(const T* __restrict__ g, const T* __restrict__ x,
                        const W* __restrict__ w, const W* __restrict__ b,
                        const A* __restrict__ mean, const A* __restrict__ variance,
                        const A* __restrict__ sums, A eps, A inverse, int64_t channels,
                        uint32_t count, uint32_t length, uint32_t parts, uint32_t chunk,
                        T* __restrict__ gx) {
  static_assert(THEN == NOTHING || (THEN == RELU && TRAINING), "others have passed their g");
  constexpr int depth = Depth<VEC>::value, columns = LAST ? VEC : 1;
  Walk<LAST, VEC> walk(gridDim.x - 1 - blockIdx.x, channels, count, length, parts, chunk);
  if (walk.left == 0) return;
  Affine<A> affine[columns];
  A shift[columns] = {}, slope[columns] = {};
#pragma unroll
  for (int k = 0; k < columns; ++k) {
    const int64_t channel = walk.channel + k;
    affine[k].read(channel, mean, variance, eps, w, THEN == RELU ? b : nullptr);
    if constexpr (TRAINING) {
      const A r = A(1) / square_root(variance[channel] + eps);
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
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
          const int k = LAST ? j : 0;
          A gy = widen(raw_g[d][j]);
          if constexpr (TRAINING) {
            const A value = widen(raw_x[d][j]);
            if constexpr (THEN == RELU) gy = through(narrow<T>(affine[k].of(value)), gy);
            gy -= shift[k] + (value - affine[k].middle) * slope[k];
          }
          raw_g[d][j] = narrow<T>(gy * affine[k].scale);
        }
        store(gx + at[d], raw_g[d]);
      }
    }
  }
}
