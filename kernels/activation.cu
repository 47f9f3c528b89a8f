// The gated linear unit and its gradient.
//
// Op:          glu and its gradient
// Math:        y = u * sigmoid(v) of the halves u, v of an axis
//              gx = (g * sigmoid(v), g * u * sigmoid(v) * (1 - sigmoid(v)))
// Layout:      contiguous as (outer, 2, half)
// Launch:      grid n / (256 VEC) for n results, block 256, no shared memory
// Cost:        3 sizeof(T) bytes a result forward, 5 backward: bound by memory
// Types:       float, half, bfloat16 -> float; double -> double
// Determinism: bit for bit
// Limits:      floating dtypes only; other layouts are copied first
// Variants:    VEC: 16 bytes where memory is aligned and halves divide into them, else 1
// Instances:   glu_forward<float, 4>: 24 registers, 0 bytes shared
//              glu_backward<float, 4>: 32 registers, 0 bytes shared
//              glu_forward<float, 1>: 24 registers, 0 bytes shared
//              glu_backward<float, 1>: 24 registers, 0 bytes shared
//              glu_forward<__half, 8>: 32 registers, 0 bytes shared
//              glu_backward<__half, 8>: 40 registers, 0 bytes shared
//              glu_forward<__nv_bfloat16, 8>: 40 registers, 0 bytes shared
//              glu_backward<__nv_bfloat16, 8>: 40 registers, 0 bytes shared
//              glu_forward<double, 2>: 40 registers, 0 bytes shared
//              glu_backward<double, 2>: 32 registers, 0 bytes shared
// Source:      none
// Measured:    not yet

#include "common.cuh"

// ---------------------------------------------------------------------------- device helpers

// x / y to two units in the last place, 0 for the largest y.
__device__ __forceinline__ float quotient(float x, float y) { return __fdividef(x, y); }
__device__ __forceinline__ double quotient(double x, double y) { return x / y; }

template <typename A>
__device__ __forceinline__ A logistic(A x) {
  return quotient(A(1), A(1) + exp(-x));
}

// Where the pack at place i of (outer, half) lies in (outer, 2, half).
__device__ __forceinline__ int64_t in_halves(int64_t i, int64_t half) {
  const int64_t row = i >> 32 == 0 && half >> 32 == 0
                          ? static_cast<uint32_t>(i) / static_cast<uint32_t>(half)
                          : i / half;
  return i + row * half;
}

// ---------------------------------------------------------------------------- kernels

// n is the number of results; VEC divides half.
template <typename T, int VEC>
__global__ void __launch_bounds__(256)
    glu_forward(const T* __restrict__ x, int64_t n, int64_t half, T* __restrict__ y) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) * VEC;
  if (i >= n) return;
  const int64_t j = in_halves(i, half);
  Pack<T, VEC> u = load<VEC>(x + j);
  const Pack<T, VEC> v = load<VEC>(x + j + half);
#pragma unroll
  for (int k = 0; k < VEC; ++k) {
    u[k] = narrow<T>(quotient(widen(u[k]), acc_t<T>(1) + exp(-widen(v[k]))));
  }
  store(y + i, u);
}

template <typename T, int VEC>
__global__ void __launch_bounds__(256)
    glu_backward(const T* __restrict__ g, const T* __restrict__ x, int64_t n, int64_t half,
                 T* __restrict__ gx) {
  using A = acc_t<T>;
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) * VEC;
  if (i >= n) return;
  const int64_t j = in_halves(i, half);
  const Pack<T, VEC> gs = load<VEC>(g + i);
  Pack<T, VEC> u = load<VEC>(x + j), v = load<VEC>(x + j + half);
#pragma unroll
  for (int k = 0; k < VEC; ++k) {
    const A s = logistic(widen(v[k])), gu = widen(gs[k]) * s;
    v[k] = narrow<T>(gu * widen(u[k]) * (A(1) - s));
    u[k] = narrow<T>(gu);
  }
  store(gx + j, u);
  store(gx + j + half, v);
}
