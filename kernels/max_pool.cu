// Maxima of sliding windows, forward and backward.
//
// Op:          max_pool, max_pool_backward, max_pool_winners
// Math:        y[o] = max of x over the window o; gx[i] = sum of g[o] over the windows o that i wins
//              Of equal values the first wins, of NaNs the last; padding never wins
// Layout:      planes: contiguous (n, c, h, w), one-dimensional pools with h = 1; channels: channels
//              last, (n, h, w, c) in memory. winners lies as y
// Launch:      planes: block (X, 256 / X), X the power of two not below a plane's threads, at most
//              256; grid (ceil(threads / X), ceil(planes / (256 / X))); a thread an output
//              (forward) or VEC inputs of a row (backward)
//              channels: block (X, 256 / X), X over packs of channels; grid (places, images)
// Cost:        x, y and one byte an output; backward g, that byte, and gx: bound by memory
// Types:       float16, bfloat16, float32 -> float32; float64
// Determinism: bit for bit: every gradient is gathered by the thread that writes it
// Limits:      one or two spatial axes; kernels up to 15 x 16; planes below 2^31 elements
// Variants:    KERNEL, STRIDE: sizes the compiler knows (3/2, 2/2, dilation 1), 0: any. VEC: as wide
//              as a row or the channels divide by. Most pools of networks are max_pool_strips.cu's.
//              winners holds 16 row + column, 255 for none: the backward pass reads neither x nor y
// Instances:   max_pool_forward<float, 0>: 48 registers, 0 bytes shared
//              max_pool_forward<float, 3>: 40 registers, 0 bytes shared
//              max_pool_forward<__half, 3>: 40 registers, 0 bytes shared
//              max_pool_forward<__nv_bfloat16, 3>: 40 registers, 0 bytes shared
//              max_pool_forward<double, 3>: 40 registers, 0 bytes shared
//              max_pool_forward_channels<float, 4, 3>: 64 registers, 0 bytes shared
//              max_pool_forward_channels<__half, 8, 3>: 80 registers, 0 bytes shared
//              max_pool_forward_channels<__half, 8, 0>: 56 registers, 0 bytes shared
//              max_pool_backward<float, 4, 3, 2>: 40 registers, 0 bytes shared
//              max_pool_backward<float, 4, 2, 2>: 32 registers, 0 bytes shared
//              max_pool_backward<float, 4, 0, 0>: 48 registers, 0 bytes shared
//              max_pool_backward<__half, 8, 3, 2>: 64 registers, 0 bytes shared
//              max_pool_backward<__nv_bfloat16, 8, 3, 2>: 64 registers, 0 bytes shared
//              max_pool_backward<double, 2, 3, 2>: 40 registers, 0 bytes shared
//              max_pool_backward_channels<float, 4>: 64 registers, 0 bytes shared
//              max_pool_backward_channels<__half, 8>: 64 registers, 0 bytes shared
//              max_pool_backward_channels<__nv_bfloat16, 8>: 64 registers, 0 bytes shared
//              max_pool_backward_channels<double, 2>: 80 registers, 0 bytes shared
// Source:      none
// Measured:    NVIDIA H200, 128x64x112x112 3/1/1 float32, 2026-11-23: 1010 and 817 us, 22 and 27 % of a copy

#include "common.cuh"
#include "pool.cuh"


// ---------------------------------------------------------------------------- device helpers

// As Winner::meet; who comes after nobody wins.
template <typename A>
__device__ __forceinline__ void follow(Winner<A>& winner, A x, int place) {
  if (x > winner.best || x != x || winner.code == NOBODY) {
    winner.best = x;
    winner.code = place;
  }
}

// ---------------------------------------------------------------------------- kernels

template <typename T, int KERNEL>
__global__ void __launch_bounds__(256)
    max_pool_forward(const T* __restrict__ x, int64_t planes, int height, int width, int out_height,
                     int out_width, int kernel_h, int kernel_w, int stride_h, int stride_w,
                     int pad_h, int pad_w, int dilation_h, int dilation_w, T* __restrict__ y,
                     uint8_t* __restrict__ winners) {
  static_assert(KERNEL >= 0 && KERNEL <= 15, "codes are 16 row + column");
  typedef acc_t<T> A;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int outputs = out_height * out_width;
  if (i >= outputs) return;
  const int top = i / out_width * stride_h - pad_h, left = i % out_width * stride_w - pad_w;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  for (int64_t plane = first; plane < planes; plane += gridDim.y * blockDim.y) {
    const T* source = x + plane * height * width;
    Winner<A> winner;
    winner.start(NOBODY);
    if constexpr (KERNEL > 0) {
      A values[KERNEL][KERNEL];
#pragma unroll
      for (int a = 0; a < KERNEL; ++a) {
#pragma unroll
        for (int b = 0; b < KERNEL; ++b) {
          const int row = top + a, column = left + b;
          const bool inside = row >= 0 && row < height && column >= 0 && column < width;
          values[a][b] = inside ? at(source, row * width + column) : A(0);
        }
      }
#pragma unroll
      for (int a = 0; a < KERNEL; ++a) {
#pragma unroll
        for (int b = 0; b < KERNEL; ++b) {
          const int row = top + a, column = left + b;
          const bool inside = row >= 0 && row < height && column >= 0 && column < width;
          if (inside) follow(winner, values[a][b], 16 * a + b);
        }
      }
    } else {
      for (int a = 0; a < kernel_h; ++a) {
        const int row = top + a * dilation_h;
        if (row < 0 || row >= height) continue;
        for (int b = 0; b < kernel_w; ++b) {
          const int column = left + b * dilation_w;
          if (column < 0 || column >= width) continue;
          follow(winner, at(source, row * width + column), 16 * a + b);
        }
      }
    }
    y[plane * outputs + i] = narrow<T>(winner.best);
    winners[plane * outputs + i] = static_cast<uint8_t>(winner.code);
  }
}

template <typename T, int VEC, int KERNEL>
__global__ void __launch_bounds__(256, 3)
    max_pool_forward_channels(const T* __restrict__ x, int64_t images, int channels, int height,
                              int width, int out_height, int out_width, int kernel_h, int kernel_w,
                              int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h,
                              int dilation_w, T* __restrict__ y, uint8_t* __restrict__ winners) {
  typedef acc_t<T> A;
  const int rows = KERNEL ? KERNEL : kernel_h, columns = KERNEL ? KERNEL : kernel_w;
  const int spot = blockIdx.x * blockDim.y + threadIdx.y;
  if (spot >= out_height * out_width) return;
  const int left = spot % out_width * stride_w - pad_w, top = spot / out_width * stride_h - pad_h;
  for (int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    const int64_t place = image * out_height * out_width + spot;
    for (int c = threadIdx.x * VEC; c < channels; c += blockDim.x * VEC) {
      const T* source = x + image * height * width * channels + c;
      Winner<A> best[VEC];
#pragma unroll
      for (int v = 0; v < VEC; ++v) best[v].start(NOBODY);
#pragma unroll(KERNEL ? KERNEL : 1)
      for (int a = 0; a < rows; ++a) {
        const int row = top + a * dilation_h;
        if (row < 0 || row >= height) continue;
#pragma unroll(KERNEL ? KERNEL : 1)
        for (int b = 0; b < columns; ++b) {
          const int column = left + b * dilation_w;
          if (column < 0 || column >= width) continue;
          const int64_t from = (static_cast<int64_t>(row) * width + column) * channels;
          const Pack<T, VEC> pack = load<VEC>(source + from);
#pragma unroll
          for (int v = 0; v < VEC; ++v) follow(best[v], widen(pack[v]), 16 * a + b);
        }
      }
      Pack<T, VEC> out;
      Pack<uint8_t, VEC> codes;
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        out[v] = narrow<T>(best[v].best);
        codes[v] = static_cast<uint8_t>(best[v].code);
      }
      store<VEC>(y + place * channels + c, out);
      store<VEC>(winners + place * channels + c, codes);
    }
  }
}

// A thread gathers VEC neighbours of a row from the windows around them.
template <typename T, int VEC, int KERNEL, int STRIDE>
__global__ void __launch_bounds__(256)
    max_pool_backward(const T* __restrict__ g, const uint8_t* __restrict__ winners, int64_t planes,
                      int height, int width, int out_height, int out_width, int kernel_h,
                      int kernel_w, int stride_h, int stride_w, int pad_h, int pad_w,
                      int dilation_h, int dilation_w, T* __restrict__ gx) {
  static_assert((KERNEL > 0) == (STRIDE > 0), "both are known, or neither");
  typedef acc_t<T> A;
  const int across = width / VEC;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= height * across) return;
  const int row = i / across, column = i % across * VEC;
  const int step_h = STRIDE ? STRIDE : stride_h, step_w = STRIDE ? STRIDE : stride_w;
  const int reach_h = KERNEL ? KERNEL - 1 : (kernel_h - 1) * dilation_h;
  const int reach_w = KERNEL ? KERNEL - 1 : (kernel_w - 1) * dilation_w;
  const int spread_h = KERNEL ? 1 : dilation_h, spread_w = KERNEL ? 1 : dilation_w;
  const int down = row + pad_h, right = column + pad_w;
  const Windows over_h(down, down, reach_h, step_h, out_height);
  const Windows over_w(right, right + VEC - 1, reach_w, step_w, out_width);
  const int64_t first = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  for (int64_t plane = first; plane < planes; plane += gridDim.y * blockDim.y) {
    const int64_t source = plane * out_height * out_width;
    A sums[VEC];
#pragma unroll
    for (int v = 0; v < VEC; ++v) sums[v] = A(0);
    const auto gather = [&](A value, int code, int h, int w) {
      const bool same_row = (code >> 4) * spread_h == down - h * step_h;
      const int hit = same_row ? (code & 15) * spread_w - (right - w * step_w) : -1;
#pragma unroll
      for (int v = 0; v < VEC; ++v) sums[v] += hit == v ? value : A(0);
    };
    if constexpr (KERNEL > 0) {
      constexpr int high = (KERNEL - 1) / STRIDE + 1, wide = (VEC + KERNEL - 2) / STRIDE + 1;
      A values[high][wide];
      int codes[high][wide];
#pragma unroll
      for (int a = 0; a < high; ++a) {
#pragma unroll
        for (int b = 0; b < wide; ++b) {
          const int h = over_h.low + a, w = over_w.low + b;
          const bool inside = h <= over_h.high && w <= over_w.high;
          const int64_t from = source + h * out_width + w;
          codes[a][b] = inside ? winners[from] : NOBODY;
          values[a][b] = inside ? at(g, from) : A(0);
        }
      }
#pragma unroll
      for (int a = 0; a < high; ++a) {
#pragma unroll
        for (int b = 0; b < wide; ++b) {
          gather(values[a][b], codes[a][b], over_h.low + a, over_w.low + b);
        }
      }
    } else {
      for (int h = over_h.low; h <= over_h.high; ++h) {
        for (int w = over_w.low; w <= over_w.high; ++w) {
          const int64_t from = source + h * out_width + w;
          gather(at(g, from), winners[from], h, w);
        }
      }
    }
    Pack<T, VEC> out;
#pragma unroll
    for (int v = 0; v < VEC; ++v) out[v] = narrow<T>(sums[v]);
    store<VEC>(gx + (plane * height + row) * width + column, out);
  }
}

template <typename T, int VEC>
__global__ void __launch_bounds__(256, 3)
    max_pool_backward_channels(const T* __restrict__ g, const uint8_t* __restrict__ winners,
                               int64_t images, int channels, int height, int width, int out_height,
                               int out_width, int kernel_h, int kernel_w, int stride_h,
                               int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w,
                               T* __restrict__ gx) {
  typedef acc_t<T> A;
  const int spot = blockIdx.x * blockDim.y + threadIdx.y;
  if (spot >= height * width) return;
  const int right = spot % width + pad_w, down = spot / width + pad_h;
  const Windows over_h(down, down, (kernel_h - 1) * dilation_h, stride_h, out_height);
  const Windows over_w(right, right, (kernel_w - 1) * dilation_w, stride_w, out_width);
  for (int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    const int64_t place = image * height * width + spot;
    for (int c = threadIdx.x * VEC; c < channels; c += blockDim.x * VEC) {
      A sums[VEC];
#pragma unroll
      for (int v = 0; v < VEC; ++v) sums[v] = A(0);
      for (int h = over_h.low; h <= over_h.high; ++h) {
        const int behind_h = down - h * stride_h;
        for (int w = over_w.low; w <= over_w.high; ++w) {
          const int behind_w = right - w * stride_w;
          const int64_t from = ((image * out_height + h) * out_width + w) * channels + c;
          const Pack<T, VEC> value = load<VEC>(g + from);
          const Pack<uint8_t, VEC> code = load<VEC>(winners + from);
#pragma unroll
          for (int v = 0; v < VEC; ++v) {
            const bool hit = (code[v] >> 4) * dilation_h == behind_h &&
                             (code[v] & 15) * dilation_w == behind_w;
            sums[v] += hit ? widen(value[v]) : A(0);
          }
        }
      }
      Pack<T, VEC> out;
#pragma unroll
      for (int v = 0; v < VEC; ++v) out[v] = narrow<T>(sums[v]);
      store<VEC>(gx + place * channels + c, out);
    }
  }
}
