// Layer norm and RMS norm over rows, forward and backward.
//
// Op:          layer_norm, layer_norm_backward, rms_norm, rms_norm_backward
// Math:        m = mean(x), r = 1 / sqrt(mean((x - m)^2) + eps), z = (x - m) r, y = z w + b
//              with h = g w: gx = r (h - mean(h) - z mean(h z)), gw = sum(g z), gb = sum(g)
//              RMS: m is 0 throughout, and neither mean(h) nor b stand in the formulas
// Layout:      x, g, y, gx (rows, columns), contiguous; w, b (columns); mean, rstd (rows)
// Launch:      forward: LANES threads a row, blocks of max(256, LANES) (LANES <= 32: 256 / LANES
//              rows a block, else one); long: a block of 512 a row
//              backward: likewise, but blocks go on with every gridDim.x-th group of rows; shared
//              256 / LANES * kinds * columns accumulators when LANES <= 32 and weights are wanted
//              weights: grid ceil(kinds * columns / 32), block (32, 32)
//              columns: grid (tiles of 32 * VEC columns) * parts, block (32, 8)
// Cost:        forward 2 rows columns sizeof(T), backward 3, and for the weights 2 kinds parts
//              columns accumulators, which stay in the cache; bound by memory
// Types:       float, __half, __nv_bfloat16 -> float; double -> double; W: T, or float for any
// Determinism: bit for bit: partial sums per block, added in order; no atomics
// Limits:      weights of other dtypes than x's and float32; empty arrays
// Variants:    rows in registers (forward 4 packs a thread and up to 512 threads, then up to 32
//              values; backward 8 and 512; half of that in double), two statistics passes over them;
//              a warp of 8 packs a thread for the same rows took 39.9 us, 64 threads of 4 take 36.9,
//              256 of one 45.8, and warps that go on to further rows 39.2; LANES < 32 for
//              rows of fewer than 32 packs; longer rows are read twice, and their weights'
//              gradients are sums over columns in a pass of their own
// Instances:   layer_norm_forward<float, float, float, 4, 64, 4, false>: 56 registers, 16 bytes shared
//              layer_norm_forward<float, float, float, 4, 512, 8, false>: 80 registers, 64 bytes shared
//              layer_norm_forward<float, float, float, 1, 512, 32, false>: 128 registers, 64 bytes shared
//              layer_norm_forward<float, float, float, 4, 4, 1, true>: 32 registers, 0 bytes shared
//              layer_norm_forward<__half, float, float, 8, 32, 4, false>: 64 registers, 0 bytes shared
//              layer_norm_forward<__half, __half, float, 8, 512, 4, true>: 64 registers, 64 bytes shared
//              layer_norm_forward<__nv_bfloat16, __nv_bfloat16, float, 8, 256, 4, false>: 64 registers, 32 bytes shared
//              layer_norm_forward<__nv_bfloat16, float, float, 1, 32, 32, true>: 112 registers, 0 bytes shared
//              layer_norm_forward<double, double, double, 2, 512, 8, false>: 80 registers, 128 bytes shared
//              layer_norm_forward_long<float, float, float, 4, false>: 48 registers, 192 bytes shared
//              layer_norm_forward_long<__half, float, float, 8, false>: 56 registers, 192 bytes shared
//              layer_norm_forward_long<__nv_bfloat16, __nv_bfloat16, float, 1, true>: 32 registers, 192 bytes shared
//              layer_norm_forward_long<double, double, double, 2, false>: 80 registers, 384 bytes shared
//              layer_norm_backward<float, float, float, 4, 256, 1, false, true>: 64 registers, 512 bytes shared
//              layer_norm_backward<float, float, float, 4, 256, 4, false, true>: 176 registers, 512 bytes shared
//              layer_norm_backward<float, float, float, 1, 512, 8, false, true>: 112 registers, 512 bytes shared
//              layer_norm_backward<float, float, float, 4, 32, 4, true, true>: 152 registers, 0 bytes shared
//              layer_norm_backward<float, float, float, 4, 2, 1, false, false>: 56 registers, 0 bytes shared
//              layer_norm_backward<__half, __half, float, 8, 512, 1, false, true>: 88 registers, 512 bytes shared
//              layer_norm_backward<__half, float, float, 8, 32, 2, true, false>: 104 registers, 0 bytes shared
//              layer_norm_backward<__nv_bfloat16, __nv_bfloat16, float, 8, 128, 1, false, true>: 96 registers, 512 bytes shared
//              layer_norm_backward<__nv_bfloat16, float, float, 1, 256, 16, false, true>: 168 registers, 512 bytes shared
//              layer_norm_backward<double, double, double, 2, 512, 2, false, true>: 120 registers, 1024 bytes shared
//              layer_norm_backward_long<float, float, float, 4, false>: 48 registers, 256 bytes shared
//              layer_norm_backward_long<__half, __half, float, 8, false>: 40 registers, 256 bytes shared
//              layer_norm_backward_long<__nv_bfloat16, float, float, 8, true>: 40 registers, 256 bytes shared
//              layer_norm_backward_long<double, double, double, 2, false>: 40 registers, 512 bytes shared
//              layer_norm_backward_columns<float, float, 4, false>: 48 registers, 8192 bytes shared
//              layer_norm_backward_columns<__half, float, 8, false>: 64 registers, 16384 bytes shared
//              layer_norm_backward_columns<__nv_bfloat16, float, 1, true>: 32 registers, 2048 bytes shared
//              layer_norm_backward_columns<double, double, 2, false>: 48 registers, 8192 bytes shared
//              layer_norm_backward_weights<float, float>: 32 registers, 4224 bytes shared
//              layer_norm_backward_weights<float, __half>: 32 registers, 4224 bytes shared
//              layer_norm_backward_weights<float, __nv_bfloat16>: 32 registers, 4224 bytes shared
//              layer_norm_backward_weights<double, double>: 32 registers, 8448 bytes shared
// Source:      Ba et al., "Layer normalization" (2016); Zhang and Sennrich, "Root mean square layer
//              normalization" (2019)
// Measured:    NVIDIA H200, 16384x1024 float32: forward 35.7 us, 3.76 TB/s, 98 % of a copy of as many
//              bytes, RMS-norm 35.4 us (2026-11-23); gradient of x 4.00 and 4.03 TB/s (2026-11-22)

#include "common.cuh"
#include "moments.cuh"

// -------------------------------------------------------------------------- device helpers

// y = (x - m) r w + b for one pack; w and b may be null.
template <typename T, int VEC, typename W, typename A>
__device__ __forceinline__ void write_normalized(const A (&x)[VEC], A m, A r, const W* w,
                                                 const W* b, T* y) {
  A scale[VEC], shift[VEC];
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    scale[j] = A(1);
    shift[j] = A(0);
  }
  if (w) load_wide(w, scale);
  if (b) load_wide(b, shift);
  Pack<T, VEC> out;
#pragma unroll
  for (int j = 0; j < VEC; ++j) out[j] = narrow<T>((x[j] - m) * r * scale[j] + shift[j]);
  store(y, out);
}

// -------------------------------------------------------------------------- kernels

template <typename T, typename W, typename A, int VEC, int LANES, int ITEMS, bool RMS>
__global__ void __launch_bounds__(Rows<LANES>::threads, 1)
    layer_norm_forward(const T* __restrict__ x, const W* __restrict__ w,
                       const W* __restrict__ b, int64_t rows, int64_t columns, A eps,
                       T* __restrict__ y, A* __restrict__ mean, A* __restrict__ rstd) {
  __shared__ A shared[LANES <= 32 ? 1 : LANES / 32];
  const int lane = threadIdx.x % LANES;
  const int64_t row =
      static_cast<int64_t>(blockIdx.x) * Rows<LANES>::at_once + threadIdx.x / LANES;
  const int packs = row < rows ? static_cast<int>(columns / VEC) : 0;
  x += row * columns;
  y += row * columns;

  Pack<T, VEC> raw[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int pack = lane + i * LANES;
    if (pack < packs) raw[i] = load<VEC>(x + pack * VEC);
  }
  A values[ITEMS][VEC];
  A sum = 0, square = 0;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const bool in = lane + i * LANES < packs;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      values[i][j] = in ? widen(raw[i][j]) : A(0);
      sum += values[i][j];
    }
  }
  A m = 0;
  if constexpr (!RMS) m = row_sum<LANES>(sum, shared) / A(columns);
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const bool in = lane + i * LANES < packs;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const A step = in ? values[i][j] - m : A(0);
      square += step * step;
    }
  }
  const A r = A(1) / square_root(row_sum<LANES>(square, shared) / A(columns) + eps);
  if (lane == 0 && row < rows) {
    if constexpr (!RMS) mean[row] = m;
    rstd[row] = r;
  }
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int pack = lane + i * LANES;
    if (pack < packs) {
      write_normalized<T>(values[i], m, r, w ? w + pack * VEC : w, b ? b + pack * VEC : b,
                          y + pack * VEC);
    }
  }
}

template <typename T, typename W, typename A, int VEC, bool RMS>
__global__ void __launch_bounds__(512)
    layer_norm_forward_long(const T* __restrict__ x, const W* __restrict__ w,
                            const W* __restrict__ b, int64_t columns, A eps, T* __restrict__ y,
                            A* __restrict__ mean, A* __restrict__ rstd) {
  constexpr int depth = VEC > 8 ? 1 : 8 / VEC;
  __shared__ A shared[48];
  const int64_t row = blockIdx.x, packs = columns / VEC;
  x += row * columns;
  y += row * columns;
  Moments<A> all = {A(0), A(0), A(0)};
  A sum = 0;
  for (int64_t first = threadIdx.x; first < packs; first += 512 * depth) {
    A values[depth * VEC];
    int count = 0;
#pragma unroll
    for (int i = 0; i < depth; ++i) {
      const int64_t pack = first + i * 512;
      A part[VEC] = {};
      if (pack < packs) {
        load_wide(x + pack * VEC, part);
        count += VEC;
      }
#pragma unroll
      for (int j = 0; j < VEC; ++j) values[i * VEC + j] = part[j];
    }
    if constexpr (RMS) {
#pragma unroll
      for (int i = 0; i < depth * VEC; ++i) sum += values[i] * values[i];
    } else {
      all = joined(all, moments_of(values, count));
    }
  }
  if constexpr (RMS) {
    all.square = block_reduce<Sum, 512>(sum, A(0), shared);
  } else {
    all = block_joined<512>(all, shared);
  }
  const A m = all.mean, r = A(1) / square_root(all.square / A(columns) + eps);
  if (threadIdx.x == 0) {
    if constexpr (!RMS) mean[row] = m;
    rstd[row] = r;
  }
  for (int64_t pack = threadIdx.x; pack < packs; pack += 512) {
    A values[VEC];
    load_wide(x + pack * VEC, values);
    write_normalized<T>(values, m, r, w ? w + pack * VEC : w, b ? b + pack * VEC : b,
                        y + pack * VEC);
  }
}

// partials: (gridDim.x, kinds, columns), the sums of g z and, but for RMS, of g over each block's
// rows; null without WEIGHTS. gx may be null.
template <typename T, typename W, typename A, int VEC, int LANES, int ITEMS, bool RMS,
          bool WEIGHTS>
__global__ void __launch_bounds__(Rows<LANES>::threads, 1)
    layer_norm_backward(const T* __restrict__ g, const T* __restrict__ x,
                        const W* __restrict__ w, const A* __restrict__ mean,
                        const A* __restrict__ rstd, int64_t rows, int64_t columns,
                        T* __restrict__ gx, A* __restrict__ partials) {
  constexpr int at_once = Rows<LANES>::at_once, kinds = RMS ? 1 : 2;
  __shared__ A shared[2][LANES <= 32 ? 1 : 64];
  const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
  const int packs = static_cast<int>(columns / VEC);
  const int64_t step = static_cast<int64_t>(gridDim.x) * at_once;

  A gw[ITEMS][VEC] = {}, gb[ITEMS][VEC] = {};
  Pack<T, VEC> next_x[ITEMS], next_g[ITEMS];
  A next_m = 0, next_r = 0;
  const auto fetch = [&](int64_t row) {
    if (row >= rows) return;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int pack = lane + i * LANES;
      if (pack < packs) {
        next_x[i] = load<VEC>(x + row * columns + pack * VEC);
        next_g[i] = load<VEC>(g + row * columns + pack * VEC);
      }
    }
    if constexpr (!RMS) next_m = mean[row];
    next_r = rstd[row];
  };
  int64_t row = static_cast<int64_t>(blockIdx.x) * at_once + group;
  fetch(row);
  int place = 0;
  // all threads of the block go round equally often
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * at_once; first < rows; first += step) {
    const bool live = row < rows;
    const A m = next_m, r = next_r;
    A h[ITEMS][VEC], z[ITEMS][VEC];
    A shift = 0, slope = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int pack = lane + i * LANES;
      const bool in = live && pack < packs;
      A scale[VEC];
#pragma unroll
      for (int j = 0; j < VEC; ++j) scale[j] = A(1);
      if (w && in) load_wide(w + pack * VEC, scale);
#pragma unroll
      for (int j = 0; j < VEC; ++j) {
        const A gy = in ? widen(next_g[i][j]) : A(0);
        z[i][j] = in ? (widen(next_x[i][j]) - m) * r : A(0);
        h[i][j] = gy * scale[j];
        shift += h[i][j];
        slope += h[i][j] * z[i][j];
        if constexpr (WEIGHTS) {
          gw[i][j] += gy * z[i][j];
          if constexpr (!RMS) gb[i][j] += gy;
        }
      }
    }
    fetch(row + step);  // on its way while the sums are made
    row_sums<LANES>(shift, slope, shared[place]);
    place ^= 1;
    shift = RMS ? A(0) : shift / A(columns);
    slope /= A(columns);
    if (gx && live) {
#pragma unroll
      for (int i = 0; i < ITEMS; ++i) {
        const int pack = lane + i * LANES;
        if (pack < packs) {
          Pack<T, VEC> out;
#pragma unroll
          for (int j = 0; j < VEC; ++j) {
            out[j] = narrow<T>((h[i][j] - shift - z[i][j] * slope) * r);
          }
          store(gx + row * columns + pack * VEC, out);
        }
      }
    }
    row += step;
  }
  if constexpr (WEIGHTS) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int wide = kinds * packs * VEC;
    partials += static_cast<int64_t>(blockIdx.x) * wide;
    A* sums = at_once > 1 ? reinterpret_cast<A*>(memory) + group * wide : partials;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int pack = lane + i * LANES;
      if (pack < packs) {
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
          sums[pack * VEC + j] = gw[i][j];
          if constexpr (!RMS) sums[packs * VEC + pack * VEC + j] = gb[i][j];
        }
      }
    }
    if constexpr (at_once > 1) {
      __syncthreads();
      for (int column = threadIdx.x; column < wide; column += Rows<LANES>::threads) {
        A total = 0;
        for (int k = 0; k < at_once; ++k) total += reinterpret_cast<A*>(memory)[k * wide + column];
        partials[column] = total;
      }
    }
  }
}

template <typename T, typename W, typename A, int VEC, bool RMS>
__global__ void __launch_bounds__(512)
    layer_norm_backward_long(const T* __restrict__ g, const T* __restrict__ x,
                             const W* __restrict__ w, const A* __restrict__ mean,
                             const A* __restrict__ rstd, int64_t columns, T* __restrict__ gx) {
  __shared__ A shared[64];
  const int64_t row = blockIdx.x, packs = columns / VEC;
  const A m = RMS ? A(0) : mean[row], r = rstd[row];
  g += row * columns;
  x += row * columns;
  gx += row * columns;
  A shift = 0, slope = 0;
#pragma unroll 2
  for (int64_t pack = threadIdx.x; pack < packs; pack += 512) {
    A gy[VEC], at[VEC], scale[VEC];
#pragma unroll
    for (int j = 0; j < VEC; ++j) scale[j] = A(1);
    load_wide(g + pack * VEC, gy);
    load_wide(x + pack * VEC, at);
    if (w) load_wide(w + pack * VEC, scale);
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      shift += gy[j] * scale[j];
      slope += gy[j] * scale[j] * ((at[j] - m) * r);
    }
  }
  row_sums<512>(shift, slope, shared);
  shift = RMS ? A(0) : shift / A(columns);
  slope /= A(columns);
  for (int64_t pack = threadIdx.x; pack < packs; pack += 512) {
    A gy[VEC], at[VEC], scale[VEC];
#pragma unroll
    for (int j = 0; j < VEC; ++j) scale[j] = A(1);
    load_wide(g + pack * VEC, gy);
    load_wide(x + pack * VEC, at);
    if (w) load_wide(w + pack * VEC, scale);
    Pack<T, VEC> out;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      out[j] = narrow<T>((gy[j] * scale[j] - shift - (at[j] - m) * r * slope) * r);
    }
    store(gx + pack * VEC, out);
  }
}

// partials: (parts, kinds, columns), the same sums over every parts-th row.
template <typename T, typename A, int VEC, bool RMS>
__global__ void __launch_bounds__(256)
    layer_norm_backward_columns(const T* __restrict__ g, const T* __restrict__ x,
                                const A* __restrict__ mean, const A* __restrict__ rstd,
                                int64_t rows, int64_t columns, int64_t parts,
                                A* __restrict__ partials) {
  __shared__ A shared[2][8][32 * VEC];
  const int64_t part = blockIdx.x % parts, tile = blockIdx.x / parts;
  const int64_t column = (tile * 32 + threadIdx.x) * VEC;
  A gw[VEC] = {}, gb[VEC] = {};
  if (column < columns) {
#pragma unroll 2
    for (int64_t row = part + parts * threadIdx.y; row < rows; row += parts * 8) {
      A gy[VEC], at[VEC];
      load_wide(g + row * columns + column, gy);
      load_wide(x + row * columns + column, at);
      const A m = RMS ? A(0) : mean[row], r = rstd[row];
#pragma unroll
      for (int j = 0; j < VEC; ++j) {
        gw[j] += gy[j] * ((at[j] - m) * r);
        gb[j] += gy[j];
      }
    }
  }
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    shared[0][threadIdx.y][threadIdx.x * VEC + j] = gw[j];
    shared[1][threadIdx.y][threadIdx.x * VEC + j] = gb[j];
  }
  __syncthreads();
  partials += part * (RMS ? 1 : 2) * columns;
  for (int i = threadIdx.y * 32 + threadIdx.x; i < (RMS ? 32 : 64) * VEC; i += 256) {
    const int kind = i / (32 * VEC), place = i % (32 * VEC);
    A total = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) total += shared[kind][k][place];
    const int64_t to = tile * 32 * VEC + place;
    if (to < columns) partials[kind * columns + to] = total;
  }
}

// gw and gb: the sums of partials (parts, kinds, columns) over the parts; gw or gb may be null.
template <typename A, typename O>
__global__ void __launch_bounds__(1024)
    layer_norm_backward_weights(const A* __restrict__ partials, int64_t parts, int64_t kinds,
                                int64_t columns, O* __restrict__ gw, O* __restrict__ gb) {
  __shared__ A shared[32][33];
  const int64_t wide = kinds * columns, first = static_cast<int64_t>(blockIdx.x) * 32;
  const int64_t column = first + threadIdx.x;
  A total = 0;
  if (column < wide) {
#pragma unroll 4
    for (int64_t part = threadIdx.y; part < parts; part += 32) {
      total += partials[part * wide + column];
    }
  }
  shared[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  total = warp_reduce<Sum>(shared[threadIdx.x][threadIdx.y]);
  const int64_t to = first + threadIdx.y;
  if (threadIdx.x == 0 && to < wide) {
    O* out = to < columns ? gw : gb;
    if (out) out[to < columns ? to : to - columns] = narrow<O>(total);
  }
}
