// Softmax and its logarithm along any axis, and their gradients.
//
// Op:          softmax, softmax_backward, log_softmax, log_softmax_backward
// Math:        y = exp(x - max(x)) / sum(exp(x - max(x)));  gx = y * (g - sum(g * y))
//              LOG: y = x - max(x) - log(sum(exp(x - max(x))));  gx = g - exp(y) * sum(g)
// Layout:      x, g, y contiguous as (outer, n, inner): n is the axis, inner == 1 for the last one;
//              strided kernels read along inner, no axis is transposed
// Launch:      rows: grid ceil(outer / R), block max(WIDTH, 128), R = block / WIDTH rows a block
//              long: grid outer, block 1024 (512 for double)
//              partial, finish: grid outer * splits, block 512
//              strided: grid outer * ceil(inner / (X * VEC)), block 256 as X columns by 256 / X
// Cost:        forward 2, backward 3 sizeof(T) bytes an element where a row fits in registers; what
//              is longer is read twice, the second time mostly from L2. 1 or 2 exp: bound by memory
// Types:       float, half, bfloat16 -> float; double -> double
// Determinism: bit for bit; the order of sums depends on the shape only
// Limits:      floating dtypes only; no empty arrays; other layouts are copied first
// Variants:    rows: n <= 16384 forward, 8192 backward, WIDTH and PACKS the least that hold a row;
//              partial + finish: longer rows, fewer than 256 of them; long: the others;
//              strided: inner > 1, X = 256, 32 or 8 by how many columns there are and how long;
//              VEC: 16 bytes where rows (columns) divide into them and memory is aligned, else 1
// Instances:   softmax_forward_rows<float, 4, false, 1, 1>: 24 registers, 0 bytes shared
//              softmax_forward_rows<float, 4, false, 32, 8>: 56 registers, 0 bytes shared
//              softmax_forward_rows<float, 1, false, 32, 32>: 80 registers, 0 bytes shared
//              softmax_forward_rows<float, 4, false, 256, 4>: 40 registers, 128 bytes shared
//              softmax_forward_rows<float, 4, true, 512, 8>: 72 registers, 128 bytes shared
//              softmax_forward_rows<__half, 8, false, 128, 4>: 56 registers, 128 bytes shared
//              softmax_forward_rows<__nv_bfloat16, 8, true, 512, 4>: 72 registers, 128 bytes shared
//              softmax_forward_rows<__nv_bfloat16, 1, false, 128, 16>: 56 registers, 128 bytes shared
//              softmax_forward_rows<double, 2, false, 32, 16>: 96 registers, 0 bytes shared
//              softmax_forward_rows<double, 2, false, 512, 16>: 96 registers, 256 bytes shared
//              softmax_backward_rows<float, 4, false, 1, 1>: 24 registers, 0 bytes shared
//              softmax_backward_rows<float, 4, false, 32, 8>: 88 registers, 0 bytes shared
//              softmax_backward_rows<float, 1, true, 32, 32>: 128 registers, 0 bytes shared
//              softmax_backward_rows<float, 4, false, 256, 4>: 56 registers, 128 bytes shared
//              softmax_backward_rows<__half, 8, true, 512, 2>: 40 registers, 128 bytes shared
//              softmax_backward_rows<__nv_bfloat16, 8, false, 128, 4>: 80 registers, 128 bytes shared
//              softmax_backward_rows<double, 2, false, 32, 16>: 168 registers, 0 bytes shared
//              softmax_backward_rows<double, 2, true, 512, 8>: 96 registers, 256 bytes shared
//              softmax_forward_long<float, 4, false>: 56 registers, 128 bytes shared
//              softmax_forward_long<__half, 8, true>: 72 registers, 128 bytes shared
//              softmax_forward_long<__nv_bfloat16, 8, false>: 72 registers, 128 bytes shared
//              softmax_forward_long<double, 2, false>: 64 registers, 256 bytes shared
//              softmax_forward_long<float, 1, false>: 48 registers, 128 bytes shared
//              softmax_backward_long<float, 4, false>: 40 registers, 128 bytes shared
//              softmax_backward_long<__half, 8, true>: 48 registers, 128 bytes shared
//              softmax_backward_long<__nv_bfloat16, 1, false>: 32 registers, 128 bytes shared
//              softmax_backward_long<double, 2, true>: 72 registers, 256 bytes shared
//              softmax_forward_partial<float, float, 4>: 72 registers, 128 bytes shared
//              softmax_forward_partial<__half, float, 8>: 72 registers, 128 bytes shared
//              softmax_forward_partial<double, double, 2>: 64 registers, 256 bytes shared
//              softmax_forward_finish<float, float, 4, false>: 40 registers, 128 bytes shared
//              softmax_forward_finish<__nv_bfloat16, float, 8, true>: 40 registers, 128 bytes shared
//              softmax_forward_finish<double, double, 2, false>: 72 registers, 256 bytes shared
//              softmax_backward_partial<float, float, 4, false>: 48 registers, 128 bytes shared
//              softmax_backward_partial<__half, float, 8, true>: 40 registers, 128 bytes shared
//              softmax_backward_partial<double, double, 2, false>: 40 registers, 256 bytes shared
//              softmax_backward_finish<float, float, 4, false>: 48 registers, 128 bytes shared
//              softmax_backward_finish<__half, float, 8, true>: 48 registers, 128 bytes shared
//              softmax_backward_finish<double, double, 2, false>: 32 registers, 256 bytes shared
//              softmax_forward_strided<float, 4, false, 32>: 72 registers, 8192 bytes shared
//              softmax_forward_strided<float, 1, true, 8>: 48 registers, 2048 bytes shared
//              softmax_forward_strided<__half, 8, false, 256>: 80 registers, 0 bytes shared
//              softmax_forward_strided<__nv_bfloat16, 8, true, 32>: 72 registers, 16384 bytes shared
//              softmax_forward_strided<double, 2, false, 32>: 88 registers, 8192 bytes shared
//              softmax_backward_strided<float, 4, false, 32>: 72 registers, 4096 bytes shared
//              softmax_backward_strided<float, 1, true, 8>: 40 registers, 1024 bytes shared
//              softmax_backward_strided<__half, 8, false, 256>: 80 registers, 0 bytes shared
//              softmax_backward_strided<__nv_bfloat16, 8, true, 32>: 88 registers, 8192 bytes shared
//              softmax_backward_strided<double, 2, false, 32>: 72 registers, 4096 bytes shared
// Source:      Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018)
// Measured:    NVIDIA H200, 8192x4096 float32, 2026-11-22: forward 3.95 TB/s, 100 % of a copy, backward
//              4.23 TB/s, 107 %; bfloat16, 2026-11-23: 3.84 and 4.10 TB/s, 97 and 104 % (forward by 256
//              threads of 2 packs: 3.34)

#include "common.cuh"
#include "online.cuh"

// ---------------------------------------------------------------------------- device helpers

// exp(x - top) / total, or x - top - log(total): `scale` is 1 / total, or log(total).
template <bool LOG, typename A>
__device__ __forceinline__ A normalized(A x, A top, A scale) {
  if constexpr (LOG) return x - top - scale;
  return exp(x - top) * scale;
}
template <bool LOG, typename A>
__device__ __forceinline__ A scale_of(A total) {
  if constexpr (LOG) return log(total);
  return A(1) / total;
}
// NaN instead of infinities, which no softmax has.
template <typename A>
__device__ __forceinline__ A finite_or_nan(A top) {
  return top + (top - top);
}

// What is summed for the gradient, and the gradient.
template <bool LOG, typename A>
__device__ __forceinline__ A term_of(A g, A y) {
  return LOG ? g : g * y;
}
template <bool LOG, typename A>
__device__ __forceinline__ A gradient_of(A g, A y, A total) {
  if constexpr (LOG) return g - exp(y) * total;
  return y * (g - total);
}

// What each_pack does with a row, or a part of it.
template <bool LOG, typename T>
struct WriteForward {
  const T* __restrict__ x;
  acc_t<T> top, scale;
  T* __restrict__ y;

  __device__ __forceinline__ WriteForward(const T* x_, Online<acc_t<T>> found, T* y_)
      : x(x_), top(finite_or_nan(found.top)), scale(scale_of<LOG>(found.sum)), y(y_) {}
  template <int N>
  __device__ __forceinline__ void at(int64_t i) const {
    const Pack<T, N> from = load<N>(x + i);
    Pack<T, N> to;
#pragma unroll
    for (int v = 0; v < N; ++v) to[v] = narrow<T>(normalized<LOG>(widen(from[v]), top, scale));
    store(y + i, to);
  }
};

template <bool LOG, typename T>
struct SumTerms {
  const T *__restrict__ g, *__restrict__ y;
  acc_t<T> total;

  template <int N>
  __device__ __forceinline__ void at(int64_t i) {
    const Pack<T, N> gs = load<N>(g + i), ys = load<N>(y + i);
#pragma unroll
    for (int v = 0; v < N; ++v) total += term_of<LOG>(widen(gs[v]), widen(ys[v]));
  }
};

template <bool LOG, typename T>
struct WriteBackward {
  const T *__restrict__ g, *__restrict__ y;
  acc_t<T> total;
  T* __restrict__ gx;

  template <int N>
  __device__ __forceinline__ void at(int64_t i) const {
    const Pack<T, N> gs = load<N>(g + i), ys = load<N>(y + i);
    Pack<T, N> to;
#pragma unroll
    for (int v = 0; v < N; ++v) {
      to[v] = narrow<T>(gradient_of<LOG>(widen(gs[v]), widen(ys[v]), total));
    }
    store(gx + i, to);
  }
};

// The threads of a block that serves a long row.
template <typename T>
constexpr int LONG = sizeof(T) == 8 ? 512 : 1024;

// Where part number `split` of a row begins; the parts' borders are multiples of 1024 elements.
__device__ __forceinline__ int64_t border(int64_t columns, int64_t splits, int64_t split) {
  const int64_t length = ((columns + splits - 1) / splits + 1023) / 1024 * 1024;
  return length * split < columns ? length * split : columns;
}

// ---------------------------------------------------------------------------- kernels

// Each row in the registers of WIDTH threads, PACKS packs a thread.
template <typename T, int VEC, bool LOG, int WIDTH, int PACKS>
__global__ void __launch_bounds__(WIDTH < 128 ? 128 : WIDTH)
    softmax_forward_rows(const T* __restrict__ x, int64_t rows, int columns, T* __restrict__ y) {
  using A = acc_t<T>;
  constexpr int THREADS = WIDTH < 128 ? 128 : WIDTH;
  __shared__ A shared[32];
  const int lane = threadIdx.x % WIDTH;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (THREADS / WIDTH) + threadIdx.x / WIDTH;
  const int end = row < rows ? columns : 0;
  A values[PACKS * VEC];
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
    const int i = (k * WIDTH + lane) * VEC;
    if (i < end) {
      const Pack<T, VEC> pack = load<VEC>(x + row * columns + i);
#pragma unroll
      for (int v = 0; v < VEC; ++v) values[k * VEC + v] = widen(pack[v]);
    } else {
#pragma unroll
      for (int v = 0; v < VEC; ++v) values[k * VEC + v] = -infinity(A(0));
    }
  }
  A top = values[0];
#pragma unroll
  for (int i = 1; i < PACKS * VEC; ++i) top = fmax(top, values[i]);
  top = group_reduce<Max, WIDTH>(top, -infinity(A(0)), shared);
  A total = A(0);
#pragma unroll
  for (int i = 0; i < PACKS * VEC; ++i) {
    values[i] -= top;
    const A power = exp(values[i]);
    total += power;
    if constexpr (!LOG) values[i] = power;
  }
  const A scale = scale_of<LOG>(group_reduce<Sum, WIDTH>(total, A(0), shared));
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
    const int i = (k * WIDTH + lane) * VEC;
    if (i < end) {
      Pack<T, VEC> pack;
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        const A value = values[k * VEC + v];
        pack[v] = narrow<T>(LOG ? value - scale : value * scale);
      }
      store(y + row * columns + i, pack);
    }
  }
}

template <typename T, int VEC, bool LOG, int WIDTH, int PACKS>
__global__ void __launch_bounds__(WIDTH < 128 ? 128 : WIDTH)
    softmax_backward_rows(const T* __restrict__ g, const T* __restrict__ y, int64_t rows,
                          int columns, T* __restrict__ gx) {
  using A = acc_t<T>;
  constexpr int THREADS = WIDTH < 128 ? 128 : WIDTH;
  __shared__ A shared[32];
  const int lane = threadIdx.x % WIDTH;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (THREADS / WIDTH) + threadIdx.x / WIDTH;
  const int end = row < rows ? columns : 0;
  Pack<T, VEC> gs[PACKS], ys[PACKS];
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
    const int i = (k * WIDTH + lane) * VEC;
    if (i < end) {
      gs[k] = load<VEC>(g + row * columns + i);
      ys[k] = load<VEC>(y + row * columns + i);
    }
  }
  A total = A(0);
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
    if ((k * WIDTH + lane) * VEC < end) {
#pragma unroll
      for (int v = 0; v < VEC; ++v) total += term_of<LOG>(widen(gs[k][v]), widen(ys[k][v]));
    }
  }
  total = group_reduce<Sum, WIDTH>(total, A(0), shared);
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
    const int i = (k * WIDTH + lane) * VEC;
    if (i < end) {
      Pack<T, VEC> pack;
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        pack[v] = narrow<T>(gradient_of<LOG>(widen(gs[k][v]), widen(ys[k][v]), total));
      }
      store(gx + row * columns + i, pack);
    }
  }
}

// Each row by one block, in two passes; the second goes back, through what is still in L2.
template <typename T, int VEC, bool LOG>
__global__ void __launch_bounds__(LONG<T>)
    softmax_forward_long(const T* __restrict__ x, int64_t columns, T* __restrict__ y) {
  using A = acc_t<T>;
  __shared__ A shared[32];
  x += blockIdx.x * columns;
  y += blockIdx.x * columns;
  const Span<T, VEC> span(x, 0, columns);
  const Online<A> part = online_part<LONG<T>>(x, span, threadIdx.x, [](A, int64_t) {});
  const WriteForward<LOG, T> write(x, group_reduce<LONG<T>>(part, shared), y);
  each_pack<LONG<T>, true>(span, threadIdx.x, write);
}

template <typename T, int VEC, bool LOG>
__global__ void __launch_bounds__(LONG<T>)
    softmax_backward_long(const T* __restrict__ g, const T* __restrict__ y, int64_t columns,
                          T* __restrict__ gx) {
  using A = acc_t<T>;
  __shared__ A shared[32];
  g += blockIdx.x * columns;
  y += blockIdx.x * columns;
  gx += blockIdx.x * columns;
  const Span<T, VEC> span(g, 0, columns);
  SumTerms<LOG, T> sum{g, y, A(0)};
  each_pack<LONG<T>, false>(span, threadIdx.x, sum);
  const A total = block_reduce<Sum, LONG<T>>(sum.total, A(0), shared);
  const WriteBackward<LOG, T> write{g, y, total, gx};
  each_pack<LONG<T>, true>(span, threadIdx.x, write);
}

// Rows in `splits` <= 512 parts, one a block: sums of each part, (top, sum) or one number.
template <typename T, typename A, int VEC>
__global__ void __launch_bounds__(512)
    softmax_forward_partial(const T* __restrict__ x, int64_t columns, int splits,
                            A* __restrict__ partial) {
  __shared__ A shared[32];
  const int64_t row = blockIdx.x / splits, split = blockIdx.x % splits;
  x += row * columns;
  const Span<T, VEC> span(x, border(columns, splits, split), border(columns, splits, split + 1));
  const Online<A> part = online_part<512>(x, span, threadIdx.x, [](A, int64_t) {});
  const Online<A> found = group_reduce<512>(part, shared);
  if (threadIdx.x == 0) {
    partial[2 * static_cast<int64_t>(blockIdx.x)] = found.top;
    partial[2 * static_cast<int64_t>(blockIdx.x) + 1] = found.sum;
  }
}

template <typename T, typename A, int VEC, bool LOG>
__global__ void __launch_bounds__(512)
    softmax_forward_finish(const T* __restrict__ x, const A* __restrict__ partial, int64_t columns,
                           int splits, T* __restrict__ y) {
  __shared__ A shared[32];
  const int64_t row = blockIdx.x / splits, split = blockIdx.x % splits;
  x += row * columns;
  y += row * columns;
  partial += 2 * row * splits;
  Online<A> part = Online<A>::none();
  if (threadIdx.x < splits) part = {partial[2 * threadIdx.x], partial[2 * threadIdx.x + 1]};
  const Span<T, VEC> span(x, border(columns, splits, split), border(columns, splits, split + 1));
  const WriteForward<LOG, T> write(x, group_reduce<512>(part, shared), y);
  each_pack<512, false>(span, threadIdx.x, write);
}

template <typename T, typename A, int VEC, bool LOG>
__global__ void __launch_bounds__(512)
    softmax_backward_partial(const T* __restrict__ g, const T* __restrict__ y, int64_t columns,
                             int splits, A* __restrict__ partial) {
  __shared__ A shared[32];
  const int64_t row = blockIdx.x / splits, split = blockIdx.x % splits;
  g += row * columns;
  y += row * columns;
  const Span<T, VEC> span(g, border(columns, splits, split), border(columns, splits, split + 1));
  SumTerms<LOG, T> sum{g, y, A(0)};
  each_pack<512, false>(span, threadIdx.x, sum);
  const A total = block_reduce<Sum, 512>(sum.total, A(0), shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

template <typename T, typename A, int VEC, bool LOG>
__global__ void __launch_bounds__(512)
    softmax_backward_finish(const T* __restrict__ g, const T* __restrict__ y,
                            const A* __restrict__ partial, int64_t columns, int splits,
                            T* __restrict__ gx) {
  __shared__ A shared[32];
  const int64_t row = blockIdx.x / splits, split = blockIdx.x % splits;
  g += row * columns;
  y += row * columns;
  gx += row * columns;
  const A part = threadIdx.x < splits ? partial[row * splits + threadIdx.x] : A(0);
  const Span<T, VEC> span(g, border(columns, splits, split), border(columns, splits, split + 1));
  const WriteBackward<LOG, T> write{g, y, block_reduce<Sum, 512>(part, A(0), shared), gx};
  each_pack<512, false>(span, threadIdx.x, write);
}

// X * VEC neighbouring columns of one slab (n, inner) a block; 256 / X threads share a column.
template <typename T, int VEC, bool LOG, int X>
__global__ void __launch_bounds__(256)
    softmax_forward_strided(const T* __restrict__ x, int64_t n, int64_t inner, int64_t tiles,
                            T* __restrict__ y) {
  using A = acc_t<T>;
  __shared__ Online<A> shared[VEC][256];
  const int64_t column = (blockIdx.x % tiles * X + threadIdx.x % X) * VEC;
  const int64_t start = blockIdx.x / tiles * n * inner + column;
  const int64_t end = column < inner ? n : 0;
  const int first = threadIdx.x / X;
  Online<A> found[VEC];
  online_columns<X>(x + start, inner, first, end, found, shared, [](A, int64_t, int) {});
  A top[VEC], scale[VEC];
#pragma unroll
  for (int v = 0; v < VEC; ++v) {
    top[v] = finite_or_nan(found[v].top);
    scale[v] = scale_of<LOG>(found[v].sum);
  }
#pragma unroll 4
  for (int64_t i = first; i < end; i += 256 / X) {
    Pack<T, VEC> pack = load<VEC>(x + start + i * inner);
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      pack[v] = narrow<T>(normalized<LOG>(widen(pack[v]), top[v], scale[v]));
    }
    store(y + start + i * inner, pack);
  }
}

template <typename T, int VEC, bool LOG, int X>
__global__ void __launch_bounds__(256)
    softmax_backward_strided(const T* __restrict__ g, const T* __restrict__ y, int64_t n,
                             int64_t inner, int64_t tiles, T* __restrict__ gx) {
  using A = acc_t<T>;
  __shared__ A shared[VEC][256];
  const int64_t column = (blockIdx.x % tiles * X + threadIdx.x % X) * VEC;
  const int64_t start = blockIdx.x / tiles * n * inner + column;
  const int64_t end = column < inner ? n : 0;
  const int first = threadIdx.x / X;
  A total[VEC];
#pragma unroll
  for (int v = 0; v < VEC; ++v) total[v] = A(0);
#pragma unroll 4
  for (int64_t i = first; i < end; i += 256 / X) {
    const Pack<T, VEC> gs = load<VEC>(g + start + i * inner);
    const Pack<T, VEC> ys = load<VEC>(y + start + i * inner);
#pragma unroll
    for (int v = 0; v < VEC; ++v) total[v] += term_of<LOG>(widen(gs[v]), widen(ys[v]));
  }
  sum_columns<X>(total, shared);
#pragma unroll 4
  for (int64_t i = first; i < end; i += 256 / X) {
    const Pack<T, VEC> gs = load<VEC>(g + start + i * inner);
    const Pack<T, VEC> ys = load<VEC>(y + start + i * inner);
    Pack<T, VEC> pack;
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      pack[v] = narrow<T>(gradient_of<LOG>(widen(gs[v]), widen(ys[v]), total[v]));
    }
    store(gx + start + i * inner, pack);
  }
}
