// Maxima and means of sliding windows, forward and backward.
//
// Op:          max_pool, max_pool_backward, max_pool_winners; avg_pool, avg_pool_backward
// Math:        y[o] = max of x over the window o; gx[i] = sum of g[o] over the windows o that i wins
//              y[o] = sum of x over the window o / n(o); gx[i] = sum of g[o] / n(o) over o around i
//              Of equal values the first wins, of NaNs the last; padding never wins. n(o) counts
//              what lies inside, or in the padding as well, or is given.
// Layout:      planes: contiguous (n, c, h, w), one-dimensional pools with h = 1; channels: channels
//              last, (n, h, w, c) in memory. winners lies as y
// Launch:      planes: block (X, 256 / X), X the power of two not below a plane's threads, at most
//              256; grid (ceil(threads / X), ceil(planes / (256 / X))); a thread an output
//              (forward) or VEC inputs of a row (backward)
//              channels: block (X, 256 / X), X over packs of channels; grid (places, images)
//              rows: a warp a plane, 8 a block; no shared memory
// Cost:        max: x, y and one byte an output; backward g, that byte, and gx: bound by memory.
//              avg: x and y, g and gx
// Types:       float16, bfloat16, float32 -> float32; float64
// Determinism: bit for bit: every gradient is gathered by the thread that writes it
// Limits:      one or two spatial axes; max: kernels up to 15 x 16; planes below 2^31 elements
// Variants:    KERNEL, STRIDE: sizes the compiler knows (3/2, 2/2, dilation 1), 0: any. VEC: as wide
//              as a row or the channels divide by. rows: one window over the whole plane.
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
//              avg_pool_forward<float, 0>: 32 registers, 0 bytes shared
//              avg_pool_forward<__half, 3>: 48 registers, 0 bytes shared
//              avg_pool_forward<__nv_bfloat16, 3>: 48 registers, 0 bytes shared
//              avg_pool_forward<double, 0>: 40 registers, 0 bytes shared
//              avg_pool_forward_rows<float>: 32 registers, 0 bytes shared
//              avg_pool_forward_rows<__nv_bfloat16>: 32 registers, 0 bytes shared
//              avg_pool_forward_rows<double>: 40 registers, 0 bytes shared
//              avg_pool_forward_channels<float, 4>: 80 registers, 0 bytes shared
//              avg_pool_forward_channels<__half, 8>: 72 registers, 0 bytes shared
//              avg_pool_forward_channels<__nv_bfloat16, 8>: 72 registers, 0 bytes shared
//              avg_pool_forward_channels<double, 2>: 80 registers, 0 bytes shared
//              avg_pool_backward<float, 4>: 80 registers, 0 bytes shared
//              avg_pool_backward<__half, 8>: 72 registers, 0 bytes shared
//              avg_pool_backward<double, 2>: 80 registers, 0 bytes shared
//              avg_pool_backward_channels<float, 4>: 80 registers, 0 bytes shared
//              avg_pool_backward_channels<__half, 8>: 80 registers, 0 bytes shared
//              avg_pool_backward_channels<__nv_bfloat16, 8>: 80 registers, 0 bytes shared
//              avg_pool_backward_channels<double, 2>: 80 registers, 0 bytes shared
// Source:      none
// Measured:    H200, 128x64x112x112, 2026-11-22, % of a copy: maximum 50, 44; average 67, 31

#include "common.cuh"

// ---------------------------------------------------------------------------- device helpers

__device__ __forceinline__ float lowest(float) { return __int_as_float(0xff800000); }
__device__ __forceinline__ double lowest(double) {
  return __longlong_as_double(0xfff0000000000000ll);
}

constexpr int NOBODY = 255;

// The maximum so far and who holds it.
template <typename A>
struct Winner {
  A best;
  int code;
  __device__ __forceinline__ void start() {
    best = lowest(A(0));
    code = NOBODY;
  }
  __device__ __forceinline__ void meet(A x, int place) {
    if (x > best || x != x || code == NOBODY) {
      best = x;
      code = place;
    }
  }
};

// The windows along an axis that reach the places first .. last of the padded axis: low .. high.
struct Windows {
  int low, high;
  __device__ __forceinline__ Windows(int first, int last, int reach, int stride, int count) {
    const int before = first - reach;
    low = before <= 0 ? 0 : (before + stride - 1) / stride;
    high = last / stride < count ? last / stride : count - 1;
  }
};

// Where a window of an average starts and ends inside of the axis, and how many it counts.
struct Span {
  int start, end, counted;
  __device__ __forceinline__ Span(int window, int size, int kernel, int stride, int pad,
                                  int include) {
    const int begin = window * stride - pad;
    const int reach = min(begin + kernel, size + pad);
    start = max(begin, 0);
    end = min(reach, size);
    counted = include ? reach - begin : end - start;
  }
};

// A gradient divided by what its window counts; `divisor` if that is not 0.
__device__ __forceinline__ float divided(float x, int n) { return __fdividef(x, n); }
__device__ __forceinline__ double divided(double x, int n) { return x / n; }
template <typename A>
__device__ __forceinline__ A shared_out(A g, const Span& rows, const Span& columns, int divisor) {
  return divided(g, divisor ? divisor : rows.counted * columns.counted);
}

template <typename T>
__device__ __forceinline__ acc_t<T> at(const T* x, int64_t i) {
  return widen(x[i]);
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
    winner.start();
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
          if (inside) winner.meet(values[a][b], 16 * a + b);
        }
      }
    } else {
      for (int a = 0; a < kernel_h; ++a) {
        const int row = top + a * dilation_h;
        if (row < 0 || row >= height) continue;
        for (int b = 0; b < kernel_w; ++b) {
          const int column = left + b * dilation_w;
          if (column < 0 || column >= width) continue;
          winner.meet(at(source, row * width + column), 16 * a + b);
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
      for (int v = 0; v < VEC; ++v) best[v].start();
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
          for (int v = 0; v < VEC; ++v) best[v].meet(widen(pack[v]), 16 * a + b);
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

template <typename T, int KERNEL>
__global__ void __launch_bounds__(256)
    avg_pool_forward(const T* __restrict__ x, int64_t planes, int height, int width, int out_height,
                     int out_width, int kernel_h, int kernel_w, int stride_h, int stride_w,
                     int pad_h, int pad_w, int include, int divisor, T* __restrict__ y) {
  typedef acc_t<T> A;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int outputs = out_height * out_width;
  if (i >= outputs) return;
  const Span rows(i / out_width, height, kernel_h, stride_h, pad_h, include);
  const Span columns(i % out_width, width, kernel_w, stride_w, pad_w, include);
  const int64_t first = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  for (int64_t plane = first; plane < planes; plane += gridDim.y * blockDim.y) {
    const T* source = x + plane * height * width;
    A sum = A(0);
    if constexpr (KERNEL > 0) {
#pragma unroll
      for (int a = 0; a < KERNEL; ++a) {
#pragma unroll
        for (int b = 0; b < KERNEL; ++b) {
          const int row = rows.start + a, column = columns.start + b;
          const bool inside = row < rows.end && column < columns.end;
          sum += inside ? at(source, row * width + column) : A(0);
        }
      }
    } else {
      for (int row = rows.start; row < rows.end; ++row) {
        for (int column = columns.start; column < columns.end; ++column) {
          sum += at(source, row * width + column);
        }
      }
    }
    y[plane * outputs + i] = narrow<T>(shared_out(sum, rows, columns, divisor));
  }
}

// One window over the whole plane: a warp a plane.
template <typename T>
__global__ void __launch_bounds__(256)
    avg_pool_forward_rows(const T* __restrict__ x, int64_t planes, int64_t length, int divisor,
                          T* __restrict__ y) {
  typedef acc_t<T> A;
  const int lane = threadIdx.x % 32;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
  for (int64_t plane = first; plane < planes; plane += static_cast<int64_t>(gridDim.x) * 8) {
    const T* source = x + plane * length;
    A sum = A(0);
    for (int64_t i = lane; i < length; i += 32) sum += at(source, i);
    sum = warp_reduce<Sum>(sum);
    if (lane == 0) y[plane] = narrow<T>(sum / static_cast<A>(divisor));
  }
}

template <typename T, int VEC>
__global__ void __launch_bounds__(256, 3)
    avg_pool_forward_channels(const T* __restrict__ x, int64_t images, int channels, int height,
                              int width, int out_height, int out_width, int kernel_h, int kernel_w,
                              int stride_h, int stride_w, int pad_h, int pad_w, int include,
                              int divisor, T* __restrict__ y) {
  typedef acc_t<T> A;
  const int spot = blockIdx.x * blockDim.y + threadIdx.y;
  if (spot >= out_height * out_width) return;
  const Span rows(spot / out_width, height, kernel_h, stride_h, pad_h, include);
  const Span columns(spot % out_width, width, kernel_w, stride_w, pad_w, include);
  for (int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    const int64_t place = image * out_height * out_width + spot;
    for (int c = threadIdx.x * VEC; c < channels; c += blockDim.x * VEC) {
      A sums[VEC];
#pragma unroll
      for (int v = 0; v < VEC; ++v) sums[v] = A(0);
      for (int row = rows.start; row < rows.end; ++row) {
        for (int column = columns.start; column < columns.end; ++column) {
          const int64_t from = (image * height + row) * width + column;
          const Pack<T, VEC> pack = load<VEC>(x + from * channels + c);
#pragma unroll
          for (int v = 0; v < VEC; ++v) sums[v] += widen(pack[v]);
        }
      }
      Pack<T, VEC> out;
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        out[v] = narrow<T>(shared_out(sums[v], rows, columns, divisor));
      }
      store<VEC>(y + place * channels + c, out);
    }
  }
}

template <typename T, int VEC>
__global__ void __launch_bounds__(256, 3)
    avg_pool_backward(const T* __restrict__ g, int64_t planes, int height, int width,
                      int out_height, int out_width, int kernel_h, int kernel_w, int stride_h,
                      int stride_w, int pad_h, int pad_w, int include, int divisor,
                      T* __restrict__ gx) {
  typedef acc_t<T> A;
  const int across = width / VEC;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= height * across) return;
  const int row = i / across, column = i % across * VEC;
  const int down = row + pad_h, right = column + pad_w;
  const Windows over_h(down, down, kernel_h - 1, stride_h, out_height);
  const Windows over_w(right, right + VEC - 1, kernel_w - 1, stride_w, out_width);
  const int64_t first = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  for (int64_t plane = first; plane < planes; plane += gridDim.y * blockDim.y) {
    const T* source = g + plane * out_height * out_width;
    A sums[VEC];
#pragma unroll
    for (int v = 0; v < VEC; ++v) sums[v] = A(0);
    for (int h = over_h.low; h <= over_h.high; ++h) {
      const Span rows(h, height, kernel_h, stride_h, pad_h, include);
      for (int w = over_w.low; w <= over_w.high; ++w) {
        const Span columns(w, width, kernel_w, stride_w, pad_w, include);
        const A value = shared_out(at(source, h * out_width + w), rows, columns, divisor);
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
          const bool covered = column + v >= columns.start && column + v < columns.end;
          sums[v] += covered ? value : A(0);
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
    avg_pool_backward_channels(const T* __restrict__ g, int64_t images, int channels, int height,
                               int width, int out_height, int out_width, int kernel_h, int kernel_w,
                               int stride_h, int stride_w, int pad_h, int pad_w, int include,
                               int divisor, T* __restrict__ gx) {
  typedef acc_t<T> A;
  const int spot = blockIdx.x * blockDim.y + threadIdx.y;
  if (spot >= height * width) return;
  const int right = spot % width + pad_w, down = spot / width + pad_h;
  const Windows over_h(down, down, kernel_h - 1, stride_h, out_height);
  const Windows over_w(right, right, kernel_w - 1, stride_w, out_width);
  for (int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    const int64_t place = image * height * width + spot;
    for (int c = threadIdx.x * VEC; c < channels; c += blockDim.x * VEC) {
      A sums[VEC];
#pragma unroll
      for (int v = 0; v < VEC; ++v) sums[v] = A(0);
      for (int h = over_h.low; h <= over_h.high; ++h) {
        const Span rows(h, height, kernel_h, stride_h, pad_h, include);
        for (int w = over_w.low; w <= over_w.high; ++w) {
          const Span columns(w, width, kernel_w, stride_w, pad_w, include);
          const int64_t from = (image * out_height + h) * out_width + w;
          const Pack<T, VEC> pack = load<VEC>(g + from * channels + c);
#pragma unroll
          for (int v = 0; v < VEC; ++v) {
            sums[v] += shared_out(widen(pack[v]), rows, columns, divisor);
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
