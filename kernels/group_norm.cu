// Group norm, forward and backward; with one channel a group it is instance norm.
//
// Op:          group_norm, group_norm_backward
// Math:        a row is a sample's group: m = mean(x), r = 1 / sqrt(mean((x - m)^2) + eps) over it,
//              z = (x - m) r, y = z w[c] + b[c]; with h = g w[c]:
//              gx = r (h - mean(h) - z mean(h z)), gw[c] = sum(g z), gb[c] = sum(g)
// Layout:      x, g, y, gx (N, C, L) contiguous; w, b (C); mean, rstd (N groups)
// Launch:      LANES threads a row or plane; blocks of 256 threads when LANES <= 32, else of LANES
//              forward: grid of all rows; long: a block of 512 a row; planes: grid of all planes
//              backward: grid rows * parts, parts > 1 only with LANES = 256
// Cost:        forward 2 n sizeof(T) bytes (long rows 3), backward 5: bound by memory
// Types:       float, __half, __nv_bfloat16 -> float; double -> double; W: T or, beside 2 bytes, float
// Determinism: bit for bit: sums per plane, added in order; no atomics
// Limits:      rows of 2^31 values and more; weights of other dtypes than x's and float32
// Variants:    rows in registers as in layer_norm.cu; longer ones are read twice. Backward sums
//              planes (also what the weights' gradients are made of), then writes gx
// Instances:   group_norm_forward<float, float, float, 4, 32, 8>: 96 registers, 0 bytes shared
//              group_norm_forward<float, float, float, 4, 512, 8>: 80 registers, 64 bytes shared
//              group_norm_forward<float, float, float, 1, 256, 32>: 120 registers, 32 bytes shared
//              group_norm_forward<__half, float, float, 8, 256, 4>: 72 registers, 32 bytes shared
//              group_norm_forward<__half, __half, float, 8, 512, 4>: 72 registers, 64 bytes shared
//              group_norm_forward<__nv_bfloat16, __nv_bfloat16, float, 8, 32, 4>: 72 registers, 0 bytes shared
//              group_norm_forward<double, double, double, 2, 512, 8>: 96 registers, 128 bytes shared
//              group_norm_forward_long<float, float, float, 4>: 40 registers, 192 bytes shared
//              group_norm_forward_long<__half, __half, float, 8>: 40 registers, 192 bytes shared
//              group_norm_forward_long<__nv_bfloat16, float, float, 1>: 40 registers, 192 bytes shared
//              group_norm_forward_long<double, double, double, 2>: 64 registers, 384 bytes shared
//              group_norm_backward_planes<float, float, 4, 256>: 56 registers, 256 bytes shared
//              group_norm_backward_planes<float, float, 1, 8>: 40 registers, 0 bytes shared
//              group_norm_backward_planes<__half, float, 8, 32>: 40 registers, 0 bytes shared
//              group_norm_backward_planes<__nv_bfloat16, float, 8, 256>: 48 registers, 256 bytes shared
//              group_norm_backward_planes<double, double, 2, 256>: 64 registers, 512 bytes shared
//              group_norm_backward<float, float, float, 4, 256>: 80 registers, 256 bytes shared
//              group_norm_backward<float, float, float, 1, 16>: 56 registers, 0 bytes shared
//              group_norm_backward<__half, float, float, 8, 256>: 80 registers, 256 bytes shared
//              group_norm_backward<__half, __half, float, 8, 32>: 64 registers, 0 bytes shared
//              group_norm_backward<__nv_bfloat16, __nv_bfloat16, float, 8, 256>: 72 registers, 256 bytes shared
//              group_norm_backward<double, double, double, 2, 256>: 80 registers, 512 bytes shared
// Source:      Wu and He, "Group normalization" (2018)
// Measured:    NVIDIA H200, 64x256x32x32 float32, 32 groups, 2026-11-22: forward 3.31 TB/s, 84 % of a
//              copy; gradient of x 2.31 TB/s, 58 %

#include "common.cuh"
#include "moments.cuh"

// -------------------------------------------------------------------------- device helpers

// y for one pack of channel `channel`; w and b may be null.
template <typename T, int VEC, typename W, typename A>
__device__ __forceinline__ void write_scaled(const A (&x)[VEC], A m, A r, const W* w, const W* b,
                                             int64_t channel, T* y) {
  const A scale = w ? A(widen(w[channel])) : A(1), shift = b ? A(widen(b[channel])) : A(0);
  Pack<T, VEC> out;
#pragma unroll
  for (int j = 0; j < VEC; ++j) out[j] = narrow<T>((x[j] - m) * r * scale + shift);
  store(y, out);
}

// -------------------------------------------------------------------------- kernels

// A row has `size` channels of `length` packs, and every sample `groups` rows.
template <typename T, typename W, typename A, int VEC, int LANES, int ITEMS>
__global__ void __launch_bounds__(Rows<LANES>::threads, 1)
    group_norm_forward(const T* __restrict__ x, const W* __restrict__ w,
                       const W* __restrict__ b, int64_t rows, int64_t groups, uint32_t size,
                       uint32_t length, A eps, T* __restrict__ y, A* __restrict__ mean,
                       A* __restrict__ rstd) {
  __shared__ A shared[LANES <= 32 ? 1 : LANES / 32];
  const uint32_t lane = threadIdx.x % LANES;
  const int64_t row =
      static_cast<int64_t>(blockIdx.x) * Rows<LANES>::at_once + threadIdx.x / LANES;
  const uint32_t columns = size * length * VEC, packs = row < rows ? size * length : 0;
  x += row * columns;
  y += row * columns;

  Pack<T, VEC> raw[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const uint32_t pack = lane + i * LANES;
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
  const A m = row_sum<LANES>(sum, shared) / A(columns);
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
    mean[row] = m;
    rstd[row] = r;
  }
  const int64_t first = row % groups * size;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const uint32_t pack = lane + i * LANES;
    if (pack < packs) {
      write_scaled<T>(values[i], m, r, w, b, first + pack / length, y + pack * VEC);
    }
  }
}

template <typename T, typename W, typename A, int VEC>
__global__ void __launch_bounds__(512)
    group_norm_forward_long(const T* __restrict__ x, const W* __restrict__ w,
                            const W* __restrict__ b, int64_t groups, uint32_t size,
                            uint32_t length, A eps, T* __restrict__ y, A* __restrict__ mean,
                            A* __restrict__ rstd) {
  constexpr int depth = VEC > 8 ? 1 : 8 / VEC;
  __shared__ A shared[48];
  const int64_t row = blockIdx.x, first_channel = row % groups * size;
  const int64_t packs = static_cast<int64_t>(size) * length;
  x += row * packs * VEC;
  y += row * packs * VEC;
  Moments<A> all = {A(0), A(0), A(0)};
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
    all = joined(all, moments_of(values, count));
  }
  all = block_joined<512>(all, shared);
  const A m = all.mean, r = A(1) / square_root(all.square / all.count + eps);
  if (threadIdx.x == 0) {
    mean[row] = m;
    rstd[row] = r;
  }
  for (uint32_t pack = threadIdx.x; pack < packs; pack += 512) {
    A values[VEC];
    load_wide(x + static_cast<int64_t>(pack) * VEC, values);
    write_scaled<T>(values, m, r, w, b, first_channel + pack / length,
                    y + static_cast<int64_t>(pack) * VEC);
  }
}

// sums: (N, 2, C), of g z and of g over each plane.
template <typename T, typename A, int VEC, int LANES>
__global__ void __launch_bounds__(256)
    group_norm_backward_planes(const T* __restrict__ g, const T* __restrict__ x,
                               const A* __restrict__ mean, const A* __restrict__ rstd,
                               int64_t planes, int64_t channels, uint32_t size, uint32_t length,
                               A* __restrict__ sums) {
  constexpr int depth = VEC == 1 ? 8 : VEC < 8 ? 4 : 2;
  __shared__ A shared[64];
  const uint32_t lane = threadIdx.x % LANES;
  const int64_t plane =
      static_cast<int64_t>(blockIdx.x) * (256 / LANES) + threadIdx.x / LANES;
  const bool live = plane < planes;
  const int64_t row = live ? plane / size : 0;
  const A m = mean[row], r = rstd[row];
  const uint32_t packs = live ? length : 0;
  g += plane * length * VEC;
  x += plane * length * VEC;
  A slope = 0, total = 0;
  for (uint32_t first = lane; first < packs; first += depth * LANES) {
    Pack<T, VEC> raw_g[depth], raw_x[depth];
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      const int64_t pack = first + static_cast<int64_t>(d) * LANES;
      if (pack < packs) {
        raw_g[d] = load<VEC>(g + pack * VEC);
        raw_x[d] = load<VEC>(x + pack * VEC);
      }
    }
#pragma unroll
    for (int d = 0; d < depth; ++d) {
      if (first + static_cast<int64_t>(d) * LANES < packs) {
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
          const A gy = widen(raw_g[d][j]);
          total += gy;
          slope += gy * ((widen(raw_x[d][j]) - m) * r);
        }
      }
    }
  }
  row_sums<LANES>(slope, total, shared);
  if (lane == 0 && live) {
    const int64_t sample = plane / channels, to = sample * channels + plane;
    sums[to] = slope;
    sums[to + channels] = total;
  }
}

template <typename T, typename W, typename A, int VEC, int LANES>
__global__ void __launch_bounds__(256, 2)
    group_norm_backward(const T* __restrict__ g, const T* __restrict__ x,
                        const W* __restrict__ w, const A* __restrict__ mean,
                        const A* __restrict__ rstd, const A* __restrict__ sums, int64_t rows,
                        int64_t groups, uint32_t size, uint32_t length, int64_t parts,
                        T* __restrict__ gx) {
  __shared__ A shared[64];
  const uint32_t lane = threadIdx.x % LANES, packs = size * length;
  int64_t row, part = 0;
  if constexpr (LANES <= 32) {
    row = static_cast<int64_t>(blockIdx.x) * (256 / LANES) + threadIdx.x / LANES;
  } else {
    row = blockIdx.x / parts;
    part = blockIdx.x - row * parts;
  }
  const bool live = row < rows;
  const int64_t at = live ? row : 0, sample = at / groups, first = (at - sample * groups) * size;
  const int64_t channels = groups * size;
  sums += sample * 2 * channels + first;
  A slope = 0, shift = 0;
  for (uint32_t channel = lane; channel < size; channel += LANES) {
    const A scale = w ? A(widen(w[first + channel])) : A(1);
    slope += scale * sums[channel];
    shift += scale * sums[channels + channel];
  }
  row_sums<LANES>(slope, shift, shared);
  if (!live) return;
  const A inverse = A(1) / (A(packs) * A(VEC));
  slope *= inverse;
  shift *= inverse;
  const A m = mean[row], r = rstd[row];
  const int64_t start = row * packs * VEC, step = parts * LANES;
  g += start;
  x += start;
  gx += start;
#pragma unroll 4
  for (int64_t pack = part * LANES + lane; pack < packs; pack += step) {
    const A scale = w ? A(widen(w[first + static_cast<uint32_t>(pack) / length])) : A(1);
    const Pack<T, VEC> gy = load<VEC>(g + pack * VEC), values = load<VEC>(x + pack * VEC);
    Pack<T, VEC> out;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const A z = (widen(values[j]) - m) * r;
      out[j] = narrow<T>((widen(gy[j]) * scale - shift - z * slope) * r);
    }
    store(gx + pack * VEC, out);
  }
}
