// Steps of further optimizers, each for all tensors of a dtype at once and in place.
//
// Op:          adadelta_step, adamax_step, nadam_step, radam_step, rprop_step, asgd_step;
//              nadam_products, asgd_rates
// Math:        as the rules in optim/ say, for the gradient h = (maximize ? -g : g) + decay p, or
//              with decoupled decay p (1 - lr decay) and h = +-g. With s = -t ln b2 and L = 2 / (1 - b2)
//              - 1, RAdam's rho_t = L - 2 t / expm1(s), in float for s < 1/2 by its series in s, as the
//              two terms are alike then
// Layout:      any dense one, the same for all tensors at one place of the lists
// Launch:      block 256, grid the sum over tensors of ceil(n sizeof(T) / 4096);
//              ruled_numbers: ceil(tensors / 256)
// Cost:        lists read and written once: 28 bytes an element in float, asgd 20: bound by memory
// Types:       T -> acc_t<T>; step counts and the numbers of a tensor are float; these are computed in
//              double and rounded, as on the host: parameters of double tell
// Determinism: bit for bit
// Limits:      written tensors of other layouts, mixed dtypes at one place
// Variants:    a rule for each optimizer; packs of 16 bytes where a tensor's addresses allow it; a list
//              beyond what fits into 4 KB of arguments takes several launches
// Instances:   ruled_step<float, Adadelta>: 64 registers, 0 bytes shared
//              ruled_step<double, Adadelta>: 80 registers, 0 bytes shared
//              ruled_step<__half, Adadelta>: 64 registers, 0 bytes shared
//              ruled_step<float, Adamax>: 64 registers, 0 bytes shared
//              ruled_step<__nv_bfloat16, Adamax>: 64 registers, 0 bytes shared
//              ruled_step<float, NAdam>: 64 registers, 0 bytes shared
//              ruled_step<__half, NAdam>: 64 registers, 0 bytes shared
//              ruled_step<float, RAdam>: 64 registers, 0 bytes shared
//              ruled_step<double, RAdam>: 80 registers, 0 bytes shared
//              ruled_step<__nv_bfloat16, RAdam>: 64 registers, 0 bytes shared
//              ruled_step<float, Rprop>: 64 registers, 0 bytes shared
//              ruled_step<__nv_bfloat16, Rprop>: 64 registers, 0 bytes shared
//              ruled_step<float, Asgd>: 64 registers, 0 bytes shared
//              ruled_step<double, Asgd>: 64 registers, 0 bytes shared
//              ruled_numbers<NAdamProducts, double>: 32 registers, 0 bytes shared
//              ruled_numbers<AsgdRates, double>: 64 registers, 0 bytes shared
// Source:      the papers named in optim/
// Measured:    NVIDIA H200, 60 tensors of 0.5 million float32, 2026-11-23: 221 to 225 us, ASGD 160 us: 3.9 to
//              4.0 TB/s, as AdamW and SGD

#include "common.cuh"
#include "tensors.cuh"

// ---------------------------------------------------------------------------- device helpers

constexpr int THREADS = 256;
template <typename T>
constexpr int STEP_CHUNK = 4096 / sizeof(T);

// What a rule knows of its tensor: values[0] = lr where there is one, values[7] = decay; and the
// numbers that stand behind the tensor's data, such as its step count.
template <typename A>
struct Given {
  A values[8];
  A cells[2];
};

// A rule has DATA lists of data, p and g first, and CELLS lists of numbers. `Of` is made of what is
// given, and its call changes the values x of one element, for the gradient g with its penalty.
struct Adadelta {
  static constexpr int DATA = 4, CELLS = 0;
  static constexpr unsigned int STORES = 13;
  template <typename A>
  struct Of {  // lr, rho, 1 - rho, eps
    A lr, rho, share, eps;
    __device__ __forceinline__ Of(const Given<A>& n)
        : lr(n.values[0]), rho(n.values[1]), share(n.values[2]), eps(n.values[3]) {}
    __device__ __forceinline__ void operator()(A (&x)[DATA], A g) const {
      x[2] = x[2] * rho + g * g * share;
      const A delta = sqrt(x[3] + eps) / sqrt(x[2] + eps) * g;
      x[3] = x[3] * rho + delta * delta * share;
      x[0] -= lr * delta;
    }
  };
};

struct Adamax {
  static constexpr int DATA = 4, CELLS = 1;
  static constexpr unsigned int STORES = 13;
  template <typename A>
  struct Of {  // lr, 1 - b1, ln b1, b2, eps
    A rate, share, beta2, eps;
    __device__ __forceinline__ Of(const Given<A>& n)
        : rate(n.values[0] / -expm1(n.cells[0] * n.values[2])),
          share(n.values[1]), beta2(n.values[3]), eps(n.values[4]) {}
    __device__ __forceinline__ void operator()(A (&x)[DATA], A g) const {
      x[2] += (g - x[2]) * share;
      x[3] = Max::of(x[3] * beta2, fabs(g) + eps);
      x[0] -= x[2] / x[3] * rate;
    }
  };
};

// NAdam's momentum after t steps.
template <typename A>
__device__ __forceinline__ A momentum(A beta1, A t, A decay) {
  return beta1 * (A(1) - A(0.5) * exp(t * decay * A(-0.040821994520255166)));  // ln 0.96
}

struct NAdam {
  static constexpr int DATA = 4, CELLS = 2;
  static constexpr unsigned int STORES = 13;
  template <typename A>
  struct Of {  // lr, 1 - b1, b2, 1 - b2, ln b2, eps, momentum decay; the momenta's product
    A share1, beta2, share2, eps, scale, by_gradient, by_mean;
    __device__ __forceinline__ Of(const Given<A>& n)
        : share1(n.values[1]), beta2(n.values[2]), share2(n.values[3]), eps(n.values[5]) {
      const A t = n.cells[0], product = n.cells[1], beta1 = A(1) - share1;
      const A now = momentum(beta1, t, n.values[6]);
      const A coming = momentum(beta1, t + A(1), n.values[6]);
      scale = A(1) / sqrt(-expm1(t * n.values[4]));
      by_gradient = n.values[0] * (A(1) - now) / (A(1) - product);
      by_mean = n.values[0] * coming / (A(1) - product * coming);
    }
    __device__ __forceinline__ void operator()(A (&x)[DATA], A g) const {
      x[2] += (g - x[2]) * share1;
      x[3] = x[3] * beta2 + g * g * share2;
      x[0] -= (by_gradient * g + by_mean * x[2]) / (sqrt(x[3]) * scale + eps);
    }
  };
};

struct RAdam {
  static constexpr int DATA = 4, CELLS = 1;
  static constexpr unsigned int STORES = 13;
  template <typename A>
  struct Of {  // lr, 1 - b1, ln b1, b2, 1 - b2, ln b2, eps
    A share1, beta2, share2, eps, rate, factor;
    bool rectified;
    __device__ __forceinline__ Of(const Given<A>& n)
        : share1(n.values[1]), beta2(n.values[3]), share2(n.values[4]), eps(n.values[6]) {
      const A t = n.cells[0], limit = A(2) / share2 - A(1);
      const A x = -n.values[5], s = x * t, s2 = s * s;
      const A series = A(1) - s * (A(1) / 6 - s2 * (A(1) / 360 - s2 / 15120));
      const bool alike = sizeof(A) == 4 && s < A(0.5);
      const A length = alike ? x * (A(1) / 6 - x * x / 360) + t * series
                             : limit - A(2) * t / expm1(s);
      rectified = length > A(5);
      rate = n.values[0] / -expm1(t * n.values[2]);
      const A square = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length);
      factor = rectified ? sqrt(square * -expm1(-s)) : A(1);
    }
    __device__ __forceinline__ void operator()(A (&x)[DATA], A g) const {
      x[2] += (g - x[2]) * share1;
      x[3] = x[3] * beta2 + g * g * share2;
      A step = x[2] * rate;
      if (rectified) step = step * factor / (sqrt(x[3]) + eps);
      x[0] -= step;
    }
  };
};

struct Rprop {
  static constexpr int DATA = 4, CELLS = 0;
  static constexpr unsigned int STORES = 13;
  template <typename A>
  struct Of {  // smaller, larger, low, high
    A smaller, larger, low, high;
    __device__ __forceinline__ Of(const Given<A>& n)
        : smaller(n.values[0]), larger(n.values[1]), low(n.values[2]), high(n.values[3]) {}
    __device__ __forceinline__ void operator()(A (&x)[DATA], A g) const {
      const A agreement = g * x[2];
      if (agreement > A(0)) x[3] *= larger;
      if (agreement < A(0)) {
        x[3] *= smaller;
        g = A(0);
      }
      x[3] = x[3] < low ? low : x[3] > high ? high : x[3];
      x[2] = g;
      x[0] -= g > A(0) ? x[3] : g < A(0) ? -x[3] : g * x[3];  // NaN stays
    }
  };
};

struct Asgd {
  static constexpr int DATA = 3, CELLS = 2;
  static constexpr unsigned int STORES = 5;
  template <typename A>
  struct Of {  // lambda; eta and mu of the tensor
    A shrink, eta, mu;
    __device__ __forceinline__ Of(const Given<A>& n)
        : shrink(A(1) - n.values[0] * n.cells[0]), eta(n.cells[0]), mu(n.cells[1]) {}
    __device__ __forceinline__ void operator()(A (&x)[DATA], A g) const {
      x[0] = x[0] * shrink - eta * g;
      x[2] = mu == A(1) ? x[0] : x[2] + (x[0] - x[2]) * mu;
    }
  };
};

// Rules for the numbers of one tensor: CELLS lists, of which the first `written` change. They are
// floats, computed from numbers of type A.
struct NAdamProducts {  // product, t; b1, momentum decay
  static constexpr int CELLS = 2, WRITTEN = 1;
  template <typename A>
  static __device__ __forceinline__ void step(float (&x)[CELLS], const Numbers<A>& n) {
    x[0] *= static_cast<float>(momentum(n[0], static_cast<A>(x[1]), n[1]));
  }
};
struct AsgdRates {  // eta, mu, t; lr, lambda, alpha, t0
  static constexpr int CELLS = 3, WRITTEN = 2;
  template <typename A>
  static __device__ __forceinline__ void step(float (&x)[CELLS], const Numbers<A>& n) {
    const A t = x[2];
    x[0] = static_cast<float>(n[0] * exp(-n[2] * log1p(n[1] * n[0] * t)));
    x[1] = static_cast<float>(A(1) / fmax(A(1), t - n[3]));
  }
};

// ---------------------------------------------------------------------------- kernels

// Lists: the rule's data, then its cells. Numbers: the rule's, the last one is the decay.
template <typename T, typename R>
__global__ void __launch_bounds__(THREADS)
    ruled_step(const __grid_constant__ Tensors<R::DATA + R::CELLS> tensors,
               const __grid_constant__ Numbers<acc_t<T>> numbers,
               const float* __restrict__ found_inf, int decoupled, int maximize) {
  typedef acc_t<T> A;
  if (is_set(found_inf)) return;
  const int which = tensor_of_block(tensors);
  Given<A> given;
#pragma unroll
  for (int i = 0; i < 8; ++i) given.values[i] = numbers[i];
#pragma unroll
  for (int i = 0; i < R::CELLS; ++i) {
    given.cells[i] = static_cast<A>(*static_cast<const float*>(tensors.at[R::DATA + i][which]));
  }
  const typename R::template Of<A> rule(given);
  const A decay = given.values[7];
  const A shrink = decoupled ? A(1) - given.values[0] * decay : A(1);
  const A penalty = decoupled ? A(0) : decay;
  constexpr unsigned int loads = (1u << R::DATA) - 1;
  for_each_element<T, R::DATA, STEP_CHUNK<T>>(
      tensors, which, loads, R::STORES, [=](A(&x)[R::DATA]) {
        A g = maximize ? -x[1] : x[1];
        if (penalty != A(0)) g += penalty * x[0];
        x[0] *= shrink;
        rule(x, g);
      });
}

template <typename R, typename A>
__global__ void __launch_bounds__(THREADS)
    ruled_numbers(const __grid_constant__ Tensors<R::CELLS> tensors,
                  const __grid_constant__ Numbers<A> numbers,
                  const float* __restrict__ found_inf) {
  const int which = blockIdx.x * THREADS + threadIdx.x;
  if (which >= tensors.count || is_set(found_inf)) return;
  float x[R::CELLS];
#pragma unroll
  for (int i = 0; i < R::CELLS; ++i) x[i] = *static_cast<const float*>(tensors.at[i][which]);
  R::step(x, numbers);
#pragma unroll
  for (int i = 0; i < R::WRITTEN; ++i) *static_cast<float*>(tensors.at[i][which]) = x[i];
}
