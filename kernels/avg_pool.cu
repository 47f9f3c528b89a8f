// Means of sliding windows, forward and backward.
//
// Op:          avg_pool, avg_pool_backward
// Math:        y[o] = sum of x over the window o / n(o); gx[i] = sum of g[o] / n(o) over o around i
//              n(o) counts what lies inside, or in the padding as well, or is given
// Layout:      planes: contiguous (n, c, h, w), one-dimensional pools with h = 1; channels: channels
//              last, (n, h, w, c) in memory
// Launch:      planes: block (X, 256 / X), X the power of two not below a plane's threads, at most
//              256; grid (ceil(threads / X), ceil(planes / (256 / X))); a thread an output
//              (forward) or VEC inputs of a row (backward)
//              channels: block (X, 256 / X), X over packs of channels; grid (places, images)
//              rows: a warp a plane, 8 a block; no shared memory
// Cost:        x and y; g and gx: bound by memory
// Types:       float16, bfloat16, float32 -> float32; float64
// Determinism: bit for bit: every gradient is gathered by the thread that writes it
// Limits:      one or two spatial axes; planes below 2^31 elements
// Variants:    KERNEL: 2 and 3 are sizes the compiler knows, 0: any. VEC: as wide as a row or the
//              channels divide by. rows: one window over the whole plane
// Instances:   avg_pool_forward<float, 0>: 32 registers, 0 bytes shared
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
// Measured:    H200, 128x64x112x112 2x2, 2026-11-22, % of a copy: 67, 31

#include "common.cuh"
#include "pool.cuh"

// ---------------------------------------------------------------------------- device helpers

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

// ---------------------------------------------------------------------------- kernels
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
