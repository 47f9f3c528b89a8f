// Optimizer steps and gradient clipping, each for all tensors of a dtype at once and in place.
//
// Op:          sgd_step, adam_step, rmsprop_step, adagrad_step, count_steps, grad_norm,
//              clip_to_norm, clamp_each, zero_each, copy_each
// Math:        as the rules in optim/ say, for the gradient h = (maximize ? -g : g) + decay p
//              sgd: b = first ? h : mu b + (1 - d) h; p -= lr (nesterov ? h + mu b : b)
//              adam: m += (1 - b1) (h - m); v = b2 v + (1 - b2) h^2; w = amsgrad ? max(w, v) : v
//              p -= lr / (1 - b1^t) m / (sqrt(w) / sqrt(1 - b2^t) + eps), 1 - b^t = -expm1(t ln b)
//              rmsprop: v = a v + (1 - a) h^2; u += (1 - a) (h - u) and v - u^2 if centered
//              adagrad: s += h^2; p -= lr / (1 + (t - 1) lr_decay) h / (sqrt(s) + eps)
//              clip_to_norm: g *= min(1, most / (norm + 1e-6)), norm of order 1, 2 or infinity
// Layout:      any dense one, the same for all tensors at one place of the lists
// Launch:      block 256, grid the sum over tensors of ceil(n sizeof(T) / 4096), 65536 for norms;
//              grad_norm_total: one block of 1024; count_steps: ceil(tensors / 256)
// Cost:        every list read and written once: 20 bytes an element for sgd with momentum in
//              float, 28 for adam, 4 for norms, 8 for clipping (0 if it would change nothing):
//              bound by memory
// Types:       T -> acc_t<T>, step counts, cells and flags are float
// Determinism: bit for bit
// Limits:      written tensors of other layouts, mixed dtypes at one place, norms of other orders
// Variants:    packs of 16 bytes where a tensor's addresses allow it, else single elements; a list
//              of tensors beyond what fits into 4 KB of arguments takes several launches. Blocks take
//              4096 bytes of a tensor: of 16384 a step of AdamW took 234 us (33.5 million) and 8
//              instead of 4 (0.2 million), of 8192 230 us and 5
// Instances:   sgd_step<float>: 48 registers, 0 bytes shared
//              sgd_step<double>: 48 registers, 0 bytes shared
//              sgd_step<__half>: 48 registers, 0 bytes shared
//              sgd_step<__nv_bfloat16>: 48 registers, 0 bytes shared
//              adam_step<float, false>: 64 registers, 0 bytes shared
//              adam_step<double, false>: 64 registers, 0 bytes shared
//              adam_step<__half, false>: 64 registers, 0 bytes shared
//              adam_step<__nv_bfloat16, false>: 64 registers, 0 bytes shared
//              adam_step<float, true>: 64 registers, 0 bytes shared
//              adam_step<double, true>: 64 registers, 0 bytes shared
//              adam_step<__half, true>: 64 registers, 0 bytes shared
//              adam_step<__nv_bfloat16, true>: 72 registers, 0 bytes shared
//              rmsprop_step<float>: 64 registers, 0 bytes shared
//              rmsprop_step<double>: 64 registers, 0 bytes shared
//              rmsprop_step<__half>: 64 registers, 0 bytes shared
//              rmsprop_step<__nv_bfloat16>: 64 registers, 0 bytes shared
//              adagrad_step<float>: 64 registers, 0 bytes shared
//              adagrad_step<double>: 64 registers, 0 bytes shared
//              adagrad_step<__half>: 64 registers, 0 bytes shared
//              adagrad_step<__nv_bfloat16>: 64 registers, 0 bytes shared
//              count_steps<478>: 16 registers, 0 bytes shared
//              grad_norm_partial<float, float, 2>: 48 registers, 32 bytes shared
//              grad_norm_partial<double, double, 2>: 48 registers, 64 bytes shared
//              grad_norm_partial<__half, float, 2>: 48 registers, 32 bytes shared
//              grad_norm_partial<__nv_bfloat16, float, 2>: 48 registers, 32 bytes shared
//              grad_norm_partial<float, float, 1>: 48 registers, 32 bytes shared
//              grad_norm_partial<float, float, 0>: 48 registers, 32 bytes shared
//              grad_norm_partial<__nv_bfloat16, float, 0>: 48 registers, 32 bytes shared
//              grad_norm_total<float, float, 2>: 32 registers, 128 bytes shared
//              grad_norm_total<double, double, 2>: 32 registers, 256 bytes shared
//              grad_norm_total<__half, float, 2>: 32 registers, 128 bytes shared
//              grad_norm_total<__nv_bfloat16, float, 2>: 32 registers, 128 bytes shared
//              grad_norm_total<float, float, 1>: 32 registers, 128 bytes shared
//              grad_norm_total<float, float, 0>: 32 registers, 128 bytes shared
//              clip_to_norm<float, float>: 48 registers, 0 bytes shared
//              clip_to_norm<double, double>: 48 registers, 0 bytes shared
//              clip_to_norm<__half, float>: 48 registers, 0 bytes shared
//              clip_to_norm<__nv_bfloat16, float>: 48 registers, 0 bytes shared
//              clamp_each<float, float>: 48 registers, 0 bytes shared
//              clamp_each<double, double>: 48 registers, 0 bytes shared
//              clamp_each<__half, float>: 48 registers, 0 bytes shared
//              clamp_each<__nv_bfloat16, float>: 48 registers, 0 bytes shared
//              zero_each<float>: 32 registers, 0 bytes shared
//              zero_each<double>: 32 registers, 0 bytes shared
//              zero_each<__half>: 32 registers, 0 bytes shared
//              zero_each<__nv_bfloat16>: 32 registers, 0 bytes shared
//              copy_each<float>: 48 registers, 0 bytes shared
//              copy_each<double>: 48 registers, 0 bytes shared
//              copy_each<__half>: 48 registers, 0 bytes shared
//              copy_each<__nv_bfloat16>: 48 registers, 0 bytes shared
// Source:      the papers named in optim/
// Measured:    NVIDIA H200, AdamW of 33.5 million float32, 2026-11-23: 227 us, 4.14 TB/s, as a copy

#include "common.cuh"
#include "tensors.cuh"

// ---------------------------------------------------------------------------- device helpers

constexpr int THREADS = 256;
template <typename T>
constexpr int STEP_CHUNK = 4096 / sizeof(T);
template <typename T>
constexpr int NORM_CHUNK = 65536 / sizeof(T);

// The gradient of what is minimised, with the penalty's.
template <typename A>
__device__ __forceinline__ A decayed(A g, A p, A weight_decay, int maximize) {
  if (maximize) g = -g;
  return weight_decay == A(0) ? g : g + weight_decay * p;
}

// The step count of a tensor, which stands behind its data.
template <typename A, int LISTS>
__device__ __forceinline__ A steps_of(const Tensors<LISTS>& tensors, int which) {
  return static_cast<A>(*static_cast<const float*>(tensors.at[LISTS - 1][which]));
}

// The terms of a norm: 1 and 2 are sums, 0 stands for infinity.
template <int ORDER>
struct Norm {
  static_assert(ORDER == 1 || ORDER == 2, "0 has its own");
  typedef Sum reduction;
  template <typename A>
  static __device__ __forceinline__ A term(A x) {
    return ORDER == 2 ? x * x : fabs(x);
  }
  template <typename A>
  static __device__ __forceinline__ A total(A x) {
    return ORDER == 2 ? sqrt(x) : x;
  }
};
template <>
struct Norm<0> {
  typedef Max reduction;
  template <typename A>
  static __device__ __forceinline__ A term(A x) {
    return fabs(x);
  }
  template <typename A>
  static __device__ __forceinline__ A total(A x) {
    return x;
  }
};

template <int COUNT>
struct Steps {
  float* at[COUNT];
  int count;
};

// ---------------------------------------------------------------------------- kernels

// Lists p, g, b. Numbers: lr, mu, 1 - d, decay. `first`: b has no value yet.
template <typename T>
__global__ void __launch_bounds__(THREADS)
    sgd_step(const __grid_constant__ Tensors<3> tensors,
             const __grid_constant__ Numbers<acc_t<T>> numbers,
             const float* __restrict__ found_inf, int momentum, int first, int nesterov,
             int maximize) {
  typedef acc_t<T> A;
  if (is_set(found_inf)) return;
  const A lr = numbers[0], mu = numbers[1], share = numbers[2], decay = numbers[3];
  const unsigned int loads = momentum && !first ? 7 : 3, stores = momentum ? 5 : 1;
  for_each_element<T, 3, STEP_CHUNK<T>>(
      tensors, tensor_of_block(tensors), loads, stores, [=](A(&x)[3]) {
        A g = decayed(x[1], x[0], decay, maximize);
        if (momentum) {
          x[2] = first ? g : x[2] * mu + g * share;
          g = nesterov ? g + mu * x[2] : x[2];
        }
        x[0] -= lr * g;
      });
}

// Lists p, g, m, v, w if AMSGRAD, t. Numbers: lr, 1 - b1, ln b1, b2, 1 - b2, ln b2, eps, decay.
template <typename T, bool AMSGRAD>
__global__ void __launch_bounds__(THREADS)
    adam_step(const __grid_constant__ Tensors<5 + AMSGRAD> tensors,
              const __grid_constant__ Numbers<acc_t<T>> numbers,
              const float* __restrict__ found_inf, int decoupled, int maximize) {
  typedef acc_t<T> A;
  constexpr int DATA = 4 + AMSGRAD;
  if (is_set(found_inf)) return;
  const int which = tensor_of_block(tensors);
  const A t = steps_of<A>(tensors, which);
  const A lr = numbers[0], share1 = numbers[1], beta2 = numbers[3], share2 = numbers[4];
  const A eps = numbers[6], decay = numbers[7];
  const A rate = lr / -expm1(t * numbers[2]);
  const A scale = A(1) / sqrt(-expm1(t * numbers[5]));
  const A shrink = decoupled ? A(1) - lr * decay : A(1);
  const A penalty = decoupled ? A(0) : decay;
  constexpr unsigned int loads = (1u << DATA) - 1, stores = loads & ~2u;
  for_each_element<T, DATA, STEP_CHUNK<T>>(tensors, which, loads, stores, [=](A(&x)[DATA]) {
    const A g = decayed(x[1], x[0], penalty, maximize);
    x[2] += (g - x[2]) * share1;
    x[3] = x[3] * beta2 + g * g * share2;
    if constexpr (AMSGRAD) x[4] = Max::of(x[4], x[3]);
    const A denominator = sqrt(x[DATA - 1]) * scale + eps;
    x[0] = x[0] * shrink - x[2] / denominator * rate;
  });
}

// Lists p, g, v, u, b. Numbers: lr, a, 1 - a, eps, decay, mu.
template <typename T>
__global__ void __launch_bounds__(THREADS)
    rmsprop_step(const __grid_constant__ Tensors<5> tensors,
                 const __grid_constant__ Numbers<acc_t<T>> numbers,
                 const float* __restrict__ found_inf, int momentum, int centered, int maximize) {
  typedef acc_t<T> A;
  if (is_set(found_inf)) return;
  const A lr = numbers[0], alpha = numbers[1], share = numbers[2];
  const A eps = numbers[3], decay = numbers[4], mu = numbers[5];
  const unsigned int states = 4 | (centered ? 8 : 0) | (momentum ? 16 : 0);
  for_each_element<T, 5, STEP_CHUNK<T>>(
      tensors, tensor_of_block(tensors), 3 | states, 1 | states, [=](A(&x)[5]) {
        A g = decayed(x[1], x[0], decay, maximize);
        x[2] = x[2] * alpha + g * g * share;
        A square = x[2];
        if (centered) {
          x[3] += (g - x[3]) * share;
          square -= x[3] * x[3];
        }
        g /= sqrt(square) + eps;
        if (momentum) {
          x[4] = x[4] * mu + g;
          g = x[4];
        }
        x[0] -= lr * g;
      });
}

// Lists p, g, s, t. Numbers: lr, lr_decay, decay, eps.
template <typename T>
__global__ void __launch_bounds__(THREADS)
    adagrad_step(const __grid_constant__ Tensors<4> tensors,
                 const __grid_constant__ Numbers<acc_t<T>> numbers,
                 const float* __restrict__ found_inf, int maximize) {
  typedef acc_t<T> A;
  if (is_set(found_inf)) return;
  const int which = tensor_of_block(tensors);
  const A t = steps_of<A>(tensors, which);
  const A rate = numbers[0] / (A(1) + (t - A(1)) * numbers[1]);
  const A decay = numbers[2], eps = numbers[3];
  for_each_element<T, 3, STEP_CHUNK<T>>(tensors, which, 7, 5, [=](A(&x)[3]) {
    const A g = decayed(x[1], x[0], decay, maximize);
    x[2] += g * g;
    x[0] -= rate * (g / (sqrt(x[2]) + eps));
  });
}

// t += 1 for every step count; a launch of its own before the step, all of whose blocks read t.
template <int COUNT>
__global__ void __launch_bounds__(THREADS)
    count_steps(const __grid_constant__ Steps<COUNT> steps, const float* __restrict__ found_inf) {
  const int i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= steps.count || is_set(found_inf)) return;
  *steps.at[i] += 1.0f;
}

// partials[offset + block]: the reduction over one chunk.
template <typename T, typename A, int ORDER>
__global__ void __launch_bounds__(THREADS)
    grad_norm_partial(const __grid_constant__ Tensors<1> tensors, int64_t offset,
                      A* __restrict__ partials) {
  typedef Norm<ORDER> N;
  __shared__ A shared[THREADS / 32];
  A result = A(0);
  for_each_element<T, 1, NORM_CHUNK<T>>(
      tensors, tensor_of_block(tensors), 1, 0,
      [&](A(&x)[1]) { result = N::reduction::of(result, N::term(x[0])); });
  result = block_reduce<typename N::reduction, THREADS>(result, A(0), shared);
  if (threadIdx.x == 0) partials[offset + blockIdx.x] = result;
}

template <typename T, typename A, int ORDER>
__global__ void __launch_bounds__(1024)
    grad_norm_total(const A* __restrict__ partials, int64_t count, T* __restrict__ total) {
  typedef Norm<ORDER> N;
  __shared__ A shared[32];
  A result = A(0);
  for (int64_t i = threadIdx.x; i < count; i += 1024) {
    result = N::reduction::of(result, partials[i]);
  }
  result = block_reduce<typename N::reduction, 1024>(result, A(0), shared);
  if (threadIdx.x == 0) *total = narrow<T>(N::total(result));
}

template <typename T, typename A>
__global__ void __launch_bounds__(THREADS)
    clip_to_norm(const __grid_constant__ Tensors<1> tensors, const T* __restrict__ total,
                 A max_norm) {
  const A factor = max_norm / (widen(*total) + A(1e-6));
  if (factor >= A(1)) return;  // NaN goes on
  for_each_element<T, 1, STEP_CHUNK<T>>(tensors, tensor_of_block(tensors), 1, 1,
                                        [=](A(&x)[1]) { x[0] *= factor; });
}

template <typename T, typename A>
__global__ void __launch_bounds__(THREADS)
    clamp_each(const __grid_constant__ Tensors<1> tensors, A low, A high) {
  for_each_element<T, 1, STEP_CHUNK<T>>(
      tensors, tensor_of_block(tensors), 1, 1, [=](A(&x)[1]) {
        x[0] = x[0] < low ? low : x[0];  // NaN stays
        x[0] = x[0] > high ? high : x[0];
      });
}

template <typename T>
__global__ void __launch_bounds__(THREADS) zero_each(const __grid_constant__ Tensors<1> tensors) {
  for_each_element<T, 1, STEP_CHUNK<T>>(tensors, tensor_of_block(tensors), 0, 1,
                                        [](acc_t<T>(&x)[1]) { x[0] = acc_t<T>(0); });
}

// Lists y, x: y[i] = x[i].
template <typename T>
__global__ void __launch_bounds__(THREADS) copy_each(const __grid_constant__ Tensors<2> tensors) {
  for_each_element<T, 2, STEP_CHUNK<T>>(tensors, tensor_of_block(tensors), 2, 1,
                                        [](acc_t<T>(&x)[2]) { x[0] = x[1]; });
}
