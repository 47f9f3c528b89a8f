// SwiGLU in one pass over memory, forward and backward.
//
// Op:          swiglu, swiglu_backward
// Math:        s = 1 / (1 + exp(-x));  y = x s w;  gx = g w s (1 + x (1 - s));  gw = g x s
// Layout:      everything contiguous
// Types:       float, half, bfloat16 -> float; double -> double
// Instances:   swiglu_forward<float>: 32 registers, 0 bytes shared
//              swiglu_forward<__half>: 32 registers, 0 bytes shared
//              swiglu_forward<__nv_bfloat16>: 32 registers, 0 bytes shared
//              swiglu_forward<double>: 40 registers, 0 bytes shared
//              swiglu_backward<float>: 32 registers, 0 bytes shared
//              swiglu_backward<__half>: 32 registers, 0 bytes shared
//              swiglu_backward<__nv_bfloat16>: 32 registers, 0 bytes shared
//              swiglu_backward<double>: 48 registers, 0 bytes shared

#include "common.cuh"  // the package's: widen, narrow, acc_t, GRID_STRIDE

template <typename A>
__device__ __forceinline__ A sigmoid(A x) {
  return A(1) / (A(1) + exp(-x));
}

template <typename T>
__global__ void __launch_bounds__(256)
    swiglu_forward(const T* __restrict__ x, const T* __restrict__ w, int64_t size,
                   T* __restrict__ y) {
  GRID_STRIDE(i, size) {
    const acc_t<T> v = widen(x[i]);
    y[i] = narrow<T>(v * sigmoid(v) * widen(w[i]));
  }
}

template <typename T>
__global__ void __launch_bounds__(256)
    swiglu_backward(const T* __restrict__ g, const T* __restrict__ x, const T* __restrict__ w,
                    int64_t size, T* __restrict__ gx, T* __restrict__ gw) {
  GRID_STRIDE(i, size) {
    const acc_t<T> v = widen(x[i]), s = sigmoid(v), d = widen(g[i]);
    gx[i] = narrow<T>(d * widen(w[i]) * s * (acc_t<T>(1) + v * (acc_t<T>(1) - s)));
    gw[i] = narrow<T>(d * v * s);
  }
}
