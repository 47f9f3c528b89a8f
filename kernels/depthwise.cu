// Depthwise convolutions: one input channel for each output channel.
//
// Op:          conv, conv_backward_input, conv_backward_weight, with as many groups as channels
// Math:        y[n, o, p] = b[o] + sum over taps k of x[n, o / m, p s - pad + k d] w[o, k]
//              gx[n, c, q] = sum over m outputs o of c, and k with p s - pad + k d = q,
//              of g[n, o, p] w[o, k]
//              gw[o, k] = sum over n, p of g[n, o, p] x[n, o / m, p s - pad + k d]
// Layout:      any strides of what is read; results contiguous or (LAST) channels_last
// Launch:      256 threads; forward and input: a thread per element, grid strided; same: grid
//              ceil(strips / 256), a strip VEC columns (or channels) of ROWS rows (by COLUMNS);
//              weight: grid (outputs, LAST: outputs / 32, taps / 9, splits)
// Cost:        2 FLOPs an element and tap: bound by memory, or by L1 where the taps are many
// Types:       float, half, bfloat16 -> float; double -> double
// Determinism: bit for bit: fixed order, splits are summed in order by a second kernel
// Limits:      2^31 output pixels in the weight's gradient
// Variants:    same: stride and dilation 1, square odd kernels (3, 5; channels last: 3) that keep the
//              size, one output a channel, both gradients' directions. Else KERNEL: 3 x 3 and 5 x 5 unrolled, 0 for others; LAST: neighbouring threads take
//              channels instead of pixels; I: int, or int64_t from 2^31 elements
// Instances:   depthwise_forward<float,int,3,false>: 64 registers, 0 bytes shared
//              depthwise_forward<__half,int,5,true>: 64 registers, 0 bytes shared
//              depthwise_forward<__nv_bfloat16,int64_t,0,false>: 64 registers, 0 bytes shared
//              depthwise_forward<double,int,0,true>: 64 registers, 0 bytes shared
//              depthwise_backward_input<float,int,3,true>: 64 registers, 0 bytes shared
//              depthwise_backward_input<__half,int64_t,5,false>: 80 registers, 0 bytes shared
//              depthwise_backward_input<__nv_bfloat16,int,0,true>: 64 registers, 0 bytes shared
//              depthwise_backward_input<double,int,0,false>: 64 registers, 0 bytes shared
//              depthwise_same<float,4,3,4,false>: 128 registers, 0 bytes shared
//              depthwise_same<float,4,5,4,true>: 128 registers, 0 bytes shared
//              depthwise_same<float,2,3,4,false>: 128 registers, 0 bytes shared
//              depthwise_same<__half,8,3,2,false>: 128 registers, 0 bytes shared
//              depthwise_same<__half,8,5,2,true>: 136 registers, 0 bytes shared
//              depthwise_same<__nv_bfloat16,8,3,2,false>: 128 registers, 0 bytes shared
//              depthwise_same<__nv_bfloat16,8,5,2,true>: 152 registers, 0 bytes shared
//              depthwise_same<double,2,3,4,false>: 128 registers, 0 bytes shared
//              depthwise_same<double,2,5,4,true>: 128 registers, 0 bytes shared
//              depthwise_same_channels<float,2,4,4,false>: 128 registers, 0 bytes shared
//              depthwise_same_channels<float,1,4,4,false>: 128 registers, 0 bytes shared
//              depthwise_same_channels<__half,8,1,2,false>: 128 registers, 0 bytes shared
//              depthwise_same_channels<__half,1,1,2,false>: 128 registers, 0 bytes shared
//              depthwise_same_channels<__nv_bfloat16,8,1,2,false>: 128 registers, 0 bytes shared
//              depthwise_same_channels<__nv_bfloat16,2,1,2,false>: 128 registers, 0 bytes shared
//              depthwise_same_channels<double,2,4,1,false>: 128 registers, 0 bytes shared
//              depthwise_same_channels<double,1,4,1,false>: 128 registers, 0 bytes shared
//              depthwise_backward_weight<float,float,false>: 104 registers, 1024 bytes shared
//              depthwise_backward_weight<__half,float,true>: 104 registers, 1024 bytes shared
//              depthwise_backward_weight<__nv_bfloat16,float,false>: 104 registers, 1024 bytes shared
//              depthwise_backward_weight<double,double,true>: 120 registers, 2048 bytes shared
// Source:      Howard et al., MobileNets, 2017
// Measured:    NVIDIA H200, 3x3, 64x256x32x32 float32, 2026-11-23, forward and gradient of x: same 35 us,
//              3.8 TB/s, 96 % of a copy (one output a thread: 261 and 254 us; 2 or 8 rows a thread 36.4
//              and 36.3); channels last 41 us, 3.3 TB/s (2 channels of 4 x 4; of 4 x 2 44.7); 5x5 51 us;
//              bfloat16 33 us, 2.0 TB/s; channels last 47 us (8 channels of 1 x 2; 4 of 2 x 2 51)

#include "common.cuh"

// ---------------------------------------------------------------------------- device helpers

// Distances in elements; `w_tap`, `w_output`: of neighbours in w. x is the convolution's input (or
// its gradient), g its output (or that's gradient).
struct Depthwise {
  int64_t x_image, x_channel, x_row, x_pixel, g_image, g_channel, g_row, g_pixel;
  int64_t w_tap, w_output;
  int batch, channels, multiplier, height, width, out_height, out_width;
  int kernel_height, kernel_width, stride_height, stride_width;
  int padding_height, padding_width, dilation_height, dilation_width;
};

// The place of element i of a dense array (n, channel, h, w), or LAST (n, h, w, channel).
template <typename I>
struct Place {
  I n;
  int channel, h, w;
};
template <bool LAST, typename I>
__device__ __forceinline__ Place<I> place_of(I i, int channels, int height, int width) {
  Place<I> at;
  if constexpr (LAST) {
    at.channel = static_cast<int>(i % channels);
    i /= channels;
  }
  at.w = static_cast<int>(i % width);
  i /= width;
  at.h = static_cast<int>(i % height);
  i /= height;
  if constexpr (!LAST) {
    at.channel = static_cast<int>(i % channels);
    i /= channels;
  }
  at.n = i;
  return at;
}

__device__ __forceinline__ bool inside(int i, int size) {
  return static_cast<unsigned>(i) < static_cast<unsigned>(size);
}

// ---------------------------------------------------------------------------- kernels

template <typename T, typename I, int KERNEL, bool LAST>
__global__ void __launch_bounds__(256, 4)
    depthwise_forward(const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ bias,
                      const Depthwise s, int64_t count, T* __restrict__ y) {
  const int rows = KERNEL ? KERNEL : s.kernel_height, columns = KERNEL ? KERNEL : s.kernel_width;
  GRID_STRIDE(i, count) {
    const Place<I> at = place_of<LAST, I>(static_cast<I>(i), s.channels * s.multiplier,
                                          s.out_height, s.out_width);
    const T* from = x + (at.n * s.x_image + at.channel / s.multiplier * s.x_channel);
    const T* weights = w + at.channel * s.w_output;
    const int h0 = at.h * s.stride_height - s.padding_height;
    const int w0 = at.w * s.stride_width - s.padding_width;
    acc_t<T> sum = bias != nullptr ? widen(bias[at.channel]) : acc_t<T>(0);
#pragma unroll
    for (int a = 0; a < rows; ++a) {
      const int h = h0 + a * s.dilation_height;
#pragma unroll
      for (int b = 0; b < columns; ++b) {
        const int v = w0 + b * s.dilation_width;
        if (inside(h, s.height) && inside(v, s.width)) {
          sum += widen(from[h * s.x_row + v * s.x_pixel]) *
                 widen(weights[(a * columns + b) * s.w_tap]);
        }
      }
    }
    y[i] = narrow<T>(sum);
  }
}

template <typename T, typename I, int KERNEL, bool LAST>
__global__ void __launch_bounds__(256, 4)
    depthwise_backward_input(const T* __restrict__ g, const T* __restrict__ w, const Depthwise s,
                             int64_t count, T* __restrict__ gx) {
  const int rows = KERNEL ? KERNEL : s.kernel_height, columns = KERNEL ? KERNEL : s.kernel_width;
  GRID_STRIDE(i, count) {
    const Place<I> at = place_of<LAST, I>(static_cast<I>(i), s.channels, s.height, s.width);
    acc_t<T> sum = acc_t<T>(0);
    for (int m = 0; m < s.multiplier; ++m) {
      const int o = at.channel * s.multiplier + m;
      const T* from = g + (at.n * s.g_image + o * s.g_channel);
      const T* weights = w + o * s.w_output;
#pragma unroll
      for (int a = 0; a < rows; ++a) {
        const int down = at.h + s.padding_height - a * s.dilation_height;
        const bool on_row = s.stride_height == 1 || down % s.stride_height == 0;
        const int h = s.stride_height == 1 ? down : down / s.stride_height;
        if (!on_row || !inside(h, s.out_height)) continue;
#pragma unroll
        for (int b = 0; b < columns; ++b) {
          const int across = at.w + s.padding_width - b * s.dilation_width;
          const bool on_pixel = s.stride_width == 1 || across % s.stride_width == 0;
          const int v = s.stride_width == 1 ? across : across / s.stride_width;
          if (on_pixel && inside(v, s.out_width)) {
            sum += widen(from[h * s.g_row + v * s.g_pixel]) *
                   widen(weights[(a * columns + b) * s.w_tap]);
          }
        }
      }
    }
    gx[i] = narrow<T>(sum);
  }
}

// "Same" convolutions keep the image's size: stride and dilation 1, an odd kernel, half of it as
// padding, one output a channel. The gradient of x is one as well, by w turned around (FLIP).
// A thread has VEC neighbouring outputs of ROWS rows of a plane, and holds what they are made of;
// what it needs beside its columns its neighbours in the warp have.
template <typename T, int VEC, int KERNEL, int ROWS, bool FLIP>
__global__ void __launch_bounds__(256)
    depthwise_same(const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ bias,
                   uint32_t strips, int channels, int height, int width, T* __restrict__ y) {
  typedef acc_t<T> A;
  constexpr int HALO = KERNEL / 2, HIGH = ROWS + 2 * HALO, TAPS = KERNEL * KERNEL;
  static_assert(KERNEL % 2 == 1 && HALO <= VEC, "a neighbour has the whole halo");
  const int lane = threadIdx.x % 32;
  const uint32_t strip = blockIdx.x * 256 + threadIdx.x;
  const uint32_t across = width / VEC, down = (height + ROWS - 1) / ROWS;
  const uint32_t band = strip / across, column = strip - band * across, plane = band / down;
  const uint32_t channel = plane % channels;
  const int first = (band - plane * down) * ROWS;
  const int64_t start = static_cast<int64_t>(plane) * height * width + column * VEC;
  const bool live = strip < strips, at_left = column == 0, at_right = column + 1 == across;
  Pack<T, VEC> rows[HIGH];
  A outer[HIGH][HALO];  // what the warp's first and last lanes' neighbours would have
#pragma unroll
  for (int a = 0; a < HIGH; ++a) {
    const int row = first - HALO + a;
    const bool here = live && inside(row, height);
    const T* from = x + start + static_cast<int64_t>(row) * width;
#pragma unroll
    for (int v = 0; v < VEC; ++v) rows[a][v] = narrow<T>(A(0));
    if (here) rows[a] = load<VEC>(from);
    const bool reads = here && ((lane == 0 && !at_left) || (lane == 31 && !at_right));
#pragma unroll
    for (int h = 0; h < HALO; ++h) {
      outer[a][h] = reads ? widen(from[lane == 0 ? h - HALO : VEC + h]) : A(0);
    }
  }
  A weights[TAPS];
#pragma unroll
  for (int k = 0; k < TAPS; ++k) {
    weights[k] = live ? widen(w[channel * TAPS + (FLIP ? TAPS - 1 - k : k)]) : A(0);
  }
  const A origin = bias != nullptr && live ? widen(bias[channel]) : A(0);
  A sums[ROWS][VEC];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) sums[r][v] = origin;
  }
#pragma unroll
  for (int a = 0; a < HIGH; ++a) {
    A line[VEC + 2 * HALO];
#pragma unroll
    for (int v = 0; v < VEC; ++v) line[HALO + v] = widen(rows[a][v]);
#pragma unroll
    for (int h = 0; h < HALO; ++h) {
      const A left = __shfl_up_sync(0xffffffffu, line[VEC + h], 1);
      const A right = __shfl_down_sync(0xffffffffu, line[HALO + h], 1);
      line[h] = lane == 0 ? outer[a][h] : at_left ? A(0) : left;
      line[HALO + VEC + h] = lane == 31 ? outer[a][h] : at_right ? A(0) : right;
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const int k = a - r;
      if (k < 0 || k >= KERNEL) continue;
#pragma unroll
      for (int b = 0; b < KERNEL; ++b) {
#pragma unroll
        for (int v = 0; v < VEC; ++v) sums[r][v] += line[v + b] * weights[k * KERNEL + b];
      }
    }
  }
  if (!live) return;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if (first + r >= height) return;
    Pack<T, VEC> out;
#pragma unroll
    for (int v = 0; v < VEC; ++v) out[v] = narrow<T>(sums[r][v]);
    store<VEC>(y + start + static_cast<int64_t>(first + r) * width, out);
  }
}

// The same with channels last, 3 x 3: a thread has VEC channels of ROWS by COLUMNS outputs.
template <typename T, int VEC, int ROWS, int COLUMNS, bool FLIP>
__global__ void __launch_bounds__(256, 2)
    depthwise_same_channels(const T* __restrict__ x, const T* __restrict__ w,
                            const T* __restrict__ bias, uint32_t strips, int channels, int height,
                            int width, T* __restrict__ y) {
  typedef acc_t<T> A;
  const uint32_t strip = blockIdx.x * 256 + threadIdx.x;
  if (strip >= strips) return;
  const uint32_t packs = channels / VEC, across = (width + COLUMNS - 1) / COLUMNS;
  const uint32_t down = (height + ROWS - 1) / ROWS;
  const uint32_t spot = strip / packs, band = spot / across, image = band / down;
  const int c = (strip - spot * packs) * VEC, left = (spot - band * across) * COLUMNS;
  const int top = (band - image * down) * ROWS;
  Pack<T, VEC> flat[9];  // VEC channels of 9 taps
#pragma unroll
  for (int i = 0; i < 9; ++i) flat[i] = load<VEC>(w + c * 9 + i * VEC);
  const auto weight = [&](int a, int b, int v) {
    const int k = v * 9 + (FLIP ? 8 - 3 * a - b : 3 * a + b);
    return widen(flat[k / VEC][k % VEC]);
  };
  A sums[ROWS][COLUMNS][VEC];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
#pragma unroll
      for (int v = 0; v < VEC; ++v) sums[r][j][v] = bias != nullptr ? widen(bias[c + v]) : A(0);
    }
  }
#pragma unroll
  for (int a = 0; a < ROWS + 2; ++a) {
    const int row = top - 1 + a;
    const int64_t line = (static_cast<int64_t>(image) * height + row) * width;
    Pack<T, VEC> values[COLUMNS + 2];
#pragma unroll
    for (int i = 0; i < COLUMNS + 2; ++i) {
      const int column = left - 1 + i;
#pragma unroll
      for (int v = 0; v < VEC; ++v) values[i][v] = narrow<T>(A(0));
      if (inside(row, height) && inside(column, width)) {
        values[i] = load<VEC>(x + (line + column) * channels + c);
      }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      if (a - r < 0 || a - r > 2) continue;
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) {
#pragma unroll
        for (int b = 0; b < 3; ++b) {
#pragma unroll
          for (int v = 0; v < VEC; ++v) {
            sums[r][j][v] += widen(values[j + b][v]) * weight(a - r, b, v);
          }
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      if (top + r >= height || left + j >= width) continue;
      Pack<T, VEC> out;
#pragma unroll
      for (int v = 0; v < VEC; ++v) out[v] = narrow<T>(sums[r][j][v]);
      const int64_t line = (static_cast<int64_t>(image) * height + top + r) * width;
      store<VEC>(y + (line + left + j) * channels + c, out);
    }
  }
}

// sums[split, output, tap] over the output pixels of one split; a block takes 9 taps.
template <typename T, typename A, bool LAST>
__global__ void __launch_bounds__(256, 2)
    depthwise_backward_weight(const T* __restrict__ g, const T* __restrict__ x, const Depthwise s,
                              int pixels, int split, A* __restrict__ sums) {
  constexpr int TAPS = 9, LANES = LAST ? 32 : 1, ROWS = 256 / LANES;
  __shared__ A shared[256];
  const int lane = threadIdx.x % LANES, row = threadIdx.x / LANES;
  const int outputs = s.channels * s.multiplier, o = blockIdx.x * LANES + lane;
  const int taps = s.kernel_height * s.kernel_width, tap0 = blockIdx.y * TAPS;
  const int64_t start = static_cast<int64_t>(blockIdx.z) * split;
  const int64_t end = start + split < pixels ? start + split : pixels;
  A sum[TAPS] = {};
  int high[TAPS], wide[TAPS];
#pragma unroll
  for (int k = 0; k < TAPS; ++k) {
    const bool live = tap0 + k < taps && o < outputs;
    const int kh = (tap0 + k) / s.kernel_width, kw = (tap0 + k) % s.kernel_width;
    high[k] = live ? kh * s.dilation_height - s.padding_height : -(1 << 30);  // never inside
    wide[k] = kw * s.dilation_width - s.padding_width;
  }
  if (o < outputs) {
    const T* from = x + o / s.multiplier * s.x_channel;
    for (int64_t p = start + row; p < end; p += ROWS) {
      const Place<int> at = place_of<true, int>(static_cast<int>(p), 1, s.out_height, s.out_width);
      const A value = widen(
          g[at.n * s.g_image + o * s.g_channel + at.h * s.g_row + at.w * s.g_pixel]);
#pragma unroll
      for (int k = 0; k < TAPS; ++k) {
        const int h = at.h * s.stride_height + high[k], v = at.w * s.stride_width + wide[k];
        if (inside(h, s.height) && inside(v, s.width)) {
          sum[k] += value * widen(from[at.n * s.x_image + h * s.x_row + v * s.x_pixel]);
        }
      }
    }
  }
  A* to = sums + (static_cast<int64_t>(blockIdx.z) * outputs + o) * taps + tap0;
#pragma unroll
  for (int k = 0; k < TAPS; ++k) {
    A total;
    if constexpr (LAST) {
      __syncthreads();
      shared[threadIdx.x] = sum[k];
      __syncthreads();
      total = A(0);
      if (row == 0) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) total += shared[r * LANES + lane];
      }
    } else {
      total = block_reduce<Sum, 256>(sum[k], A(0), shared);
    }
    if (row == 0 && o < outputs && tap0 + k < taps) to[k] = total;
  }
}
