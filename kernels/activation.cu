// Activations and their gradients, element by element.
//
// Op:          relu, threshold, hardtanh, leaky_relu, elu, celu, hardsigmoid, hardswish, hardshrink,
//              softshrink, gelu, gelu_tanh, silu, mish, softplus, log_sigmoid, sigmoid, tanh, glu
//              and the gradients of them all
// Math:        y = f(x; a, b, c);  gx = g * f'(x) (sigmoid, tanh: of y), as the functors say
//              glu: y = u * sigmoid(v) of the halves u, v of an axis
//              gx = (g * sigmoid(v), g * u * sigmoid(v) * (1 - sigmoid(v)))
// Layout:      all arrays dense in one order of axes (flat memory is what is read); glu: contiguous
//              as (outer, 2, half)
// Launch:      grid ceil(n / (256 VEC PACKS)), block 256, no shared memory; glu: PACKS = 1
// Cost:        2 sizeof(T) bytes an element forward, 3 backward, up to about 50 operations (gelu):
//              bound by memory
// Types:       float, half, bfloat16 -> float; double -> double
// Determinism: bit for bit
// Limits:      floating dtypes only; g has the shape and dtype of x; other layouts are copied first
// Variants:    VEC: 16 bytes where memory is aligned (glu: and halves divide into them), else 1;
//              PACKS: 4 (backward 2) from 2^18 elements on, else 1
// Instances:   activation_forward<float, float, Relu, 4, 4>: 40 registers, 0 bytes shared
//              activation_forward<float, float, Threshold, 4, 4>: 40 registers, 0 bytes shared
//              activation_backward<float, float, ThresholdBackward, 4, 2>: 32 registers, 0 bytes shared
//              activation_forward<float, float, Hardtanh, 4, 4>: 40 registers, 0 bytes shared
//              activation_backward<float, float, HardtanhBackward, 4, 2>: 32 registers, 0 bytes shared
//              activation_forward<float, float, LeakyRelu, 4, 4>: 40 registers, 0 bytes shared
//              activation_backward<float, float, LeakyReluBackward, 4, 2>: 32 registers, 0 bytes shared
//              activation_forward<float, float, Elu, 4, 4>: 40 registers, 0 bytes shared
//              activation_backward<float, float, EluBackward, 4, 2>: 32 registers, 0 bytes shared
//              activation_forward<float, float, Hardsigmoid, 4, 4>: 40 registers, 0 bytes shared
//              activation_backward<float, float, HardsigmoidBackward, 4, 2>: 32 registers, 0 bytes shared
//              activation_forward<float, float, Hardswish, 4, 4>: 40 registers, 0 bytes shared
//              activation_backward<float, float, HardswishBackward, 4, 2>: 32 registers, 0 bytes shared
//              activation_forward<float, float, Hardshrink, 4, 4>: 40 registers, 0 bytes shared
//              activation_forward<float, float, Softshrink, 4, 4>: 48 registers, 0 bytes shared
//              activation_backward<float, float, ShrinkBackward, 4, 2>: 32 registers, 0 bytes shared
//              activation_forward<float, float, Gelu, 4, 4>: 56 registers, 0 bytes shared
//              activation_backward<float, float, GeluBackward, 4, 2>: 48 registers, 0 bytes shared
//              activation_forward<float, float, GeluTanh, 4, 4>: 48 registers, 0 bytes shared
//              activation_backward<float, float, GeluTanhBackward, 4, 2>: 40 registers, 0 bytes shared
//              activation_forward<float, float, Silu, 4, 4>: 48 registers, 0 bytes shared
//              activation_backward<float, float, SiluBackward, 4, 2>: 40 registers, 0 bytes shared
//              activation_forward<float, float, Mish, 4, 4>: 48 registers, 0 bytes shared
//              activation_backward<float, float, MishBackward, 4, 2>: 40 registers, 0 bytes shared
//              activation_forward<float, float, Softplus, 4, 4>: 40 registers, 0 bytes shared
//              activation_backward<float, float, SoftplusBackward, 4, 2>: 32 registers, 0 bytes shared
//              activation_forward<float, float, LogSigmoid, 4, 4>: 48 registers, 0 bytes shared
//              activation_backward<float, float, LogSigmoidBackward, 4, 2>: 40 registers, 0 bytes shared
//              activation_forward<float, float, Sigmoid, 4, 4>: 48 registers, 0 bytes shared
//              activation_backward<float, float, SigmoidBackward, 4, 2>: 32 registers, 0 bytes shared
//              activation_forward<float, float, Tanh, 4, 4>: 48 registers, 0 bytes shared
//              activation_backward<float, float, TanhBackward, 4, 2>: 32 registers, 0 bytes shared
//              activation_forward<__nv_bfloat16, float, Gelu, 8, 4>: 64 registers, 0 bytes shared
//              activation_forward<double, double, Gelu, 2, 4>: 64 registers, 0 bytes shared
//              activation_forward<__nv_bfloat16, float, Mish, 8, 4>: 64 registers, 0 bytes shared
//              activation_forward<double, double, Mish, 2, 4>: 56 registers, 0 bytes shared
//              activation_forward<__nv_bfloat16, float, Softplus, 8, 4>: 64 registers, 0 bytes shared
//              activation_forward<double, double, Softplus, 2, 4>: 56 registers, 0 bytes shared
//              activation_forward<__nv_bfloat16, float, Relu, 8, 4>: 56 registers, 0 bytes shared
//              activation_forward<double, double, Relu, 2, 4>: 40 registers, 0 bytes shared
//              activation_forward<__half, float, Relu, 1, 1>: 16 registers, 0 bytes shared
//              activation_forward<__half, float, Elu, 8, 1>: 32 registers, 0 bytes shared
//              activation_backward<__half, float, GeluBackward, 8, 2>: 64 registers, 0 bytes shared
//              activation_backward<double, double, GeluBackward, 2, 2>: 56 registers, 0 bytes shared
//              activation_backward<__half, float, GeluTanhBackward, 8, 2>: 56 registers, 0 bytes shared
//              activation_backward<double, double, GeluTanhBackward, 2, 2>: 40 registers, 0 bytes shared
//              activation_backward<__half, float, MishBackward, 8, 2>: 56 registers, 0 bytes shared
//              activation_backward<double, double, MishBackward, 2, 2>: 48 registers, 0 bytes shared
//              activation_backward<__half, float, ThresholdBackward, 8, 2>: 56 registers, 0 bytes shared
//              activation_backward<double, double, ThresholdBackward, 2, 2>: 32 registers, 0 bytes shared
//              activation_backward<__nv_bfloat16, float, SiluBackward, 1, 2>: 24 registers, 0 bytes shared
//              glu_forward<float, 4>: 24 registers, 0 bytes shared
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
// Measured:    NVIDIA H200, gelu of 8192x4096 float32, 2026-11-22: forward 3.94 TB/s, 99 % of a copy;
//              backward 4.25 TB/s, 107 %

#include "common.cuh"

// ---------------------------------------------------------------------------- device helpers

// x / y to two units in the last place, 0 for the largest y.
__device__ __forceinline__ float quotient(float x, float y) { return __fdividef(x, y); }
__device__ __forceinline__ double quotient(double x, double y) { return x / y; }

template <typename A>
__device__ __forceinline__ A logistic(A x) {
  return quotient(A(1), A(1) + exp(-x));
}
template <typename A>
__device__ __forceinline__ A between(A x, A low, A high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
// The gelu's argument of tanh, doubled: 0.5 * (1 + tanh(u)) = logistic(2 u).
template <typename A>
__device__ __forceinline__ A gelu_argument(A x) {
  return A(1.5957691216057308) * x * (A(1) + A(0.044715) * x * x);
}
template <typename A>
__device__ __forceinline__ A normal(A x) {
  return A(0.5) * (A(1) + erf(x * A(0.7071067811865476)));
}

// f(x; a, b, c)
#define FORWARD template <typename A> static __device__ __forceinline__ A of(A x, A a, A b, A c)
// g * f'(x; a, b, c); x is the output where that is what is kept
#define BACKWARD \
  template <typename A> static __device__ __forceinline__ A of(A g, A x, A a, A b, A c)

struct Relu {
  FORWARD { return x <= A(0) ? A(0) : x; }
};
struct Threshold {
  FORWARD { return x <= a ? b : x; }
};
struct ThresholdBackward {
  BACKWARD { return x <= a ? A(0) : g; }
};
struct Hardtanh {
  FORWARD { return between(x, a, b); }
};
struct HardtanhBackward {
  BACKWARD { return x > a && x < b ? g : A(0); }
};
struct LeakyRelu {
  FORWARD { return x > A(0) ? x : x * a; }
};
struct LeakyReluBackward {
  BACKWARD { return x > A(0) ? g : g * a; }
};
struct Elu {  // a: scale * alpha, b: scale, c: rate
  FORWARD { return x > A(0) ? x * b : expm1(x * c) * a; }
};
struct EluBackward {  // a: scale * alpha * rate
  BACKWARD { return x > A(0) ? g * b : g * (exp(x * c) * a); }
};
struct Hardsigmoid {
  FORWARD { return between(x + A(3), A(0), A(6)) * A(1.0 / 6); }
};
struct HardsigmoidBackward {
  BACKWARD { return x > A(-3) && x < A(3) ? g * A(1.0 / 6) : A(0); }
};
struct Hardswish {
  FORWARD { return x * between(x + A(3), A(0), A(6)) * A(1.0 / 6); }
};
struct HardswishBackward {
  BACKWARD { return x <= A(-3) ? A(0) : x >= A(3) ? g : g * (x * A(1.0 / 3) + A(0.5)); }
};
struct Hardshrink {
  FORWARD { return x >= -a && x <= a ? A(0) : x; }
};
struct Softshrink {
  FORWARD { return x - between(x, -a, a); }
};
struct ShrinkBackward {
  BACKWARD { return x < -a || x > a ? g : A(0); }
};
struct Gelu {
  FORWARD { return x * normal(x); }
};
struct GeluBackward {
  BACKWARD { return g * (normal(x) + x * exp(A(-0.5) * x * x) * A(0.3989422804014327)); }
};
struct GeluTanh {
  FORWARD { return quotient(x, A(1) + exp(-gelu_argument(x))); }
};
struct GeluTanhBackward {
  BACKWARD {
    const A s = logistic(gelu_argument(x));
    const A slope = A(1.5957691216057308) * (A(1) + A(3 * 0.044715) * x * x);
    return g * (s + x * (s * (A(1) - s)) * slope);
  }
};
struct Silu {
  FORWARD { return quotient(x, A(1) + exp(-x)); }
};
struct SiluBackward {
  BACKWARD {
    const A s = logistic(x);
    return g * (s * (A(1) + x * (A(1) - s)));
  }
};
// With e = exp(x) and w = e (e + 2), tanh(log(1 + e)) = w / (w + 2).
struct Mish {
  FORWARD {
    const A e = exp(fmin(x, A(20))), w = e * (e + A(2));
    return x * quotient(w, w + A(2));
  }
};
struct MishBackward {
  BACKWARD {
    if (x > A(20)) return g + (x - x);  // NaN at infinity, as the formula
    const A e = exp(x), w = e * (e + A(2)), r = quotient(A(1), w + A(2));
    return g * (w * r + x * (A(4) * e * r) * ((e + A(1)) * r));
  }
};
struct Softplus {  // a: beta, b: threshold, c: 1 / beta
  FORWARD { return x * a > b ? x : log1p(exp(x * a)) * c; }
};
struct SoftplusBackward {
  BACKWARD { return x * a > b ? g : g * logistic(x * a); }
};
struct LogSigmoid {
  FORWARD { return fmin(x, A(0)) - log1p(exp(-fabs(x))); }
};
struct LogSigmoidBackward {
  BACKWARD { return g * logistic(-x); }
};
struct Sigmoid {
  FORWARD { return logistic(x); }
};
struct SigmoidBackward {
  BACKWARD { return g * ((A(1) - x) * x); }
};
struct Tanh {
  FORWARD { return tanh(x); }
};
struct TanhBackward {
  BACKWARD { return g * (A(1) - x * x); }
};
#undef FORWARD
#undef BACKWARD

// What can be read of the elements from i on: a pack, or the rest.
template <int VEC, typename T>
__device__ __forceinline__ void load_some(const T* __restrict__ from, int64_t i, int64_t n,
                                          Pack<T, VEC>& to) {
  if (i + VEC <= n) {
    to = load<VEC>(from + i);
  } else {
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      if (i + v < n) to[v] = from[i + v];
    }
  }
}
template <int VEC, typename T>
__device__ __forceinline__ void store_some(T* __restrict__ to, int64_t i, int64_t n,
                                           const Pack<T, VEC>& from) {
  if (i + VEC <= n) {
    store(to + i, from);
  } else {
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      if (i + v < n) to[i + v] = from[v];
    }
  }
}

// Where the pack at place i of (outer, half) lies in (outer, 2, half).
__device__ __forceinline__ int64_t in_halves(int64_t i, int64_t half) {
  const int64_t row = i >> 32 == 0 && half >> 32 == 0
                          ? static_cast<uint32_t>(i) / static_cast<uint32_t>(half)
                          : i / half;
  return i + row * half;
}

// ---------------------------------------------------------------------------- kernels

template <typename T, typename A, typename F, int VEC, int PACKS>
__global__ void __launch_bounds__(256)
    activation_forward(const T* __restrict__ x, int64_t n, A a, A b, A c, T* __restrict__ y) {
  const int64_t start = static_cast<int64_t>(blockIdx.x) * (256 * VEC * PACKS);
  Pack<T, VEC> packs[PACKS];
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
    load_some(x, start + (k * 256 + threadIdx.x) * VEC, n, packs[k]);
  }
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      packs[k][v] = narrow<T>(F::of(widen(packs[k][v]), a, b, c));
    }
    store_some(y, start + (k * 256 + threadIdx.x) * VEC, n, packs[k]);
  }
}

template <typename T, typename A, typename F, int VEC, int PACKS>
__global__ void __launch_bounds__(256)
    activation_backward(const T* __restrict__ g, const T* __restrict__ x, int64_t n, A a, A b, A c,
                        T* __restrict__ gx) {
  const int64_t start = static_cast<int64_t>(blockIdx.x) * (256 * VEC * PACKS);
  Pack<T, VEC> gs[PACKS], xs[PACKS];
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
    const int64_t i = start + (k * 256 + threadIdx.x) * VEC;
    load_some(g, i, n, gs[k]);
    load_some(x, i, n, xs[k]);
  }
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      gs[k][v] = narrow<T>(F::of(widen(gs[k][v]), widen(xs[k][v]), a, b, c));
    }
    store_some(gx, start + (k * 256 + threadIdx.x) * VEC, n, gs[k]);
  }
}

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
