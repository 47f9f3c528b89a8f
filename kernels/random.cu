// Random numbers of many distributions, drawn by counter from a ticket.
//
// Op:          none; backends/cupy/random.py draws with them, and the op dropout takes its tickets
// Math:        uniform low + u (high - low); normal by Box and Muller; exponential -log(u) / rate;
//              cauchy median + scale tan(pi (u - 1/2)); geometric ceil(log(u) / log(1 - p));
//              integers low + (word size >> bits); choices u < p; no gradients
// Layout:      contiguous outputs
// Launch:      grid min(ceil(groups / 256), 16 a multiprocessor), block 256, no shared memory; a group is what one
//              counter gives: 4 values of 32 bits or 2 of 64; the state's kernels: one thread
// Cost:        n sizeof(T) bytes written, 25 integer instructions a value (32-bit), on which it waits
// Types:       float16, bfloat16, float32 and small integers are drawn in float32, float64 and
//              int64 in float64; integers from 32-bit words, or 64-bit ones for ranges over 2^16
// Determinism: bit for bit for a seed, whatever the grid
// Limits:      an integer's chance is off by size / 2^32 (sizes to 2^16) or size / 2^64 at most
// Variants:    by distribution (a class) and by the type that it is computed in
// Instances:   set_state<unsigned long long>: 16 registers, 0 bytes shared
//              take_ticket<unsigned long long>: 24 registers, 0 bytes shared
//              fill_real<float, float, Uniform>: 32 registers, 0 bytes shared
//              fill_real<__half, float, Uniform>: 32 registers, 0 bytes shared
//              fill_real<__nv_bfloat16, float, Uniform>: 32 registers, 0 bytes shared
//              fill_real<double, double, Uniform>: 32 registers, 0 bytes shared
//              fill_real<float, float, Normal>: 40 registers, 0 bytes shared
//              fill_real<__half, float, Normal>: 40 registers, 0 bytes shared
//              fill_real<__nv_bfloat16, float, Normal>: 40 registers, 0 bytes shared
//              fill_real<double, double, Normal>: 64 registers, 0 bytes shared
//              fill_real<float, float, LogNormal>: 40 registers, 0 bytes shared
//              fill_real<double, double, LogNormal>: 64 registers, 0 bytes shared
//              fill_real<float, float, Exponential>: 32 registers, 0 bytes shared
//              fill_real<__half, float, Exponential>: 32 registers, 0 bytes shared
//              fill_real<__nv_bfloat16, float, Exponential>: 32 registers, 0 bytes shared
//              fill_real<double, double, Exponential>: 48 registers, 0 bytes shared
//              fill_real<float, float, Cauchy>: 40 registers, 0 bytes shared
//              fill_real<double, double, Cauchy>: 64 registers, 0 bytes shared
//              fill_real<float, float, Geometric>: 40 registers, 0 bytes shared
//              fill_real<unsigned char, float, Geometric>: 40 registers, 0 bytes shared
//              fill_real<long long, double, Geometric>: 64 registers, 0 bytes shared
//              fill_choices<bool>: 32 registers, 0 bytes shared
//              fill_choices<float>: 32 registers, 0 bytes shared
//              fill_choices<__half>: 32 registers, 0 bytes shared
//              fill_choices<__nv_bfloat16>: 32 registers, 0 bytes shared
//              fill_choices<double>: 32 registers, 0 bytes shared
//              fill_choices<long long>: 32 registers, 0 bytes shared
//              choose_each<float, float>: 32 registers, 0 bytes shared
//              choose_each<__nv_bfloat16, float>: 32 registers, 0 bytes shared
//              choose_each<double, double>: 32 registers, 0 bytes shared
//              fill_integers<int, 32>: 32 registers, 0 bytes shared
//              fill_integers<long long, 32>: 32 registers, 0 bytes shared
//              fill_integers<long long, 64>: 32 registers, 0 bytes shared
//              fill_integers<unsigned char, 32>: 32 registers, 0 bytes shared
//              fill_integers<bool, 32>: 32 registers, 0 bytes shared
//              fill_integers<float, 64>: 32 registers, 0 bytes shared
//              fill_integers<__half, 32>: 32 registers, 0 bytes shared
//              fill_integers<__nv_bfloat16, 64>: 32 registers, 0 bytes shared
//              fill_integers<double, 64>: 32 registers, 0 bytes shared
//              fill_poisson<float, double>: 80 registers, 0 bytes shared
//              fill_poisson<__half, double>: 80 registers, 0 bytes shared
//              fill_poisson<__nv_bfloat16, double>: 80 registers, 0 bytes shared
//              fill_poisson<double, double>: 80 registers, 0 bytes shared
//              search_rows<float>: 32 registers, 0 bytes shared
//              search_rows<double>: 32 registers, 0 bytes shared
// Source:      Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); Box and
//              Muller, "A note on the generation of random normal deviates" (1958); Hoermann, "The
//              transformed rejection method for generating Poisson random variables" (1993)
// Measured:    NVIDIA H200, 33.5 million float32, 2026-11-23: uniform and integers 41 us, 3.3 TB/s written, 83 %
//              of a copy's rate (a thread for every counter: 53 and 55), normal 75 us (85)

#include "common.cuh"
#include "philox.cuh"
#include "uniforms.cuh"

// ---------------------------------------------------------------------------- device helpers

// Conversions of what was drawn; integers go through 64 bits and wrap around.
template <typename T>
struct Made {
  template <typename A>
  static __device__ __forceinline__ T of(A x) {
    return static_cast<T>(static_cast<int64_t>(x));
  }
};
template <>
struct Made<float> {
  template <typename A>
  static __device__ __forceinline__ float of(A x) {
    return static_cast<float>(x);
  }
};
template <>
struct Made<double> {
  template <typename A>
  static __device__ __forceinline__ double of(A x) {
    return static_cast<double>(x);
  }
};
template <>
struct Made<__half> {
  template <typename A>
  static __device__ __forceinline__ __half of(A x) {
    return narrow<__half>(static_cast<float>(x));
  }
};
template <>
struct Made<__nv_bfloat16> {
  template <typename A>
  static __device__ __forceinline__ __nv_bfloat16 of(A x) {
    return narrow<__nv_bfloat16>(static_cast<float>(x));
  }
};

// -log(u) for u in (0, 1], but never 0: weights are divided by it.
__device__ __forceinline__ float race(float u) { return fmaxf(-logf(u), 0x1p-25f); }
__device__ __forceinline__ double race(double u) { return fmax(-log(u), 0x1p-54); }

// Distributions: `draw` makes a group of values from a group of uniforms and two parameters, and
// `stored` rounds one of them.
struct Plain {
  template <typename T, typename A>
  static __device__ __forceinline__ T stored(A x, A, A) {
    return Made<T>::of(x);
  }
};
struct Uniform {
  template <typename A>
  static __device__ __forceinline__ void draw(const Uniforms<A>& u, A low, A high, A* values) {
#pragma unroll
    for (int i = 0; i < Uniforms<A>::count; ++i) values[i] = low + u.below_one(i) * (high - low);
  }
  // what was rounded up to `high` becomes `low`
  template <typename T, typename A>
  static __device__ __forceinline__ T stored(A x, A low, A high) {
    const T y = Made<T>::of(x);
    return static_cast<A>(y) >= static_cast<A>(Made<T>::of(high)) ? Made<T>::of(low) : y;
  }
};
struct Normal : Plain {
  static __device__ __forceinline__ void draw(const Uniforms<float>& u, float mean, float std,
                                              float* values) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const float square = -2.0f * logf(u.above_zero(i));
      const float radius = square * rsqrtf(fmaxf(square, 0x1p-100f));
      float sine, cosine;
      sincospif(2.0f * u.below_one(i + 1), &sine, &cosine);
      values[i] = fmaf(radius * cosine, std, mean);
      values[i + 1] = fmaf(radius * sine, std, mean);
    }
  }
  static __device__ __forceinline__ void draw(const Uniforms<double>& u, double mean, double std,
                                              double* values) {
    const double radius = sqrt(-2.0 * log(u.above_zero(0)));
    double sine, cosine;
    sincospi(2.0 * u.below_one(1), &sine, &cosine);
    values[0] = fma(radius * cosine, std, mean);
    values[1] = fma(radius * sine, std, mean);
  }
};
struct LogNormal : Plain {
  template <typename A>
  static __device__ __forceinline__ void draw(const Uniforms<A>& u, A mean, A std, A* values) {
    Normal::draw(u, mean, std, values);
#pragma unroll
    for (int i = 0; i < Uniforms<A>::count; ++i) values[i] = exp(values[i]);
  }
};
struct Exponential : Plain {
  template <typename A>
  static __device__ __forceinline__ void draw(const Uniforms<A>& u, A rate, A, A* values) {
#pragma unroll
    for (int i = 0; i < Uniforms<A>::count; ++i) values[i] = race(u.above_zero(i)) / rate;
  }
};
struct Cauchy : Plain {
  template <typename A>
  static __device__ __forceinline__ void draw(const Uniforms<A>& u, A median, A scale, A* values) {
#pragma unroll
    for (int i = 0; i < Uniforms<A>::count; ++i) {
      const A angle = u.centred(i);
      values[i] = median + scale * (sinpi(angle) / cospi(angle));
    }
  }
};
// `factor` is 1 / log(1 - p)
struct Geometric : Plain {
  template <typename A>
  static __device__ __forceinline__ void draw(const Uniforms<A>& u, A factor, A, A* values) {
#pragma unroll
    for (int i = 0; i < Uniforms<A>::count; ++i) {
      const A trials = ceil(log(u.above_zero(i)) * factor);
      values[i] = trials < A(1) ? A(1) : trials;
    }
  }
};

// Write group number `group` of N values; the last group may reach beyond the end.
template <int N, typename T>
__device__ __forceinline__ void put(T* __restrict__ y, int64_t group, int64_t count,
                                    const Pack<T, N>& values) {
  const int64_t first = group * N;
  if (first + N <= count) {
    store<N>(y + first, values);
    return;
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (first + i < count) y[first + i] = values[i];
  }
}

// log(n!) by Stirling's series, to 1e-10.
__device__ __forceinline__ double log_factorial(double n) {
  double x = n + 1.0, below = 1.0;
  for (; x < 10.0; x += 1.0) below *= x;
  const double r = 1.0 / x, square = r * r;
  const double series = r * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0)));
  return (x - 0.5) * log(x) - x + 0.91893853320467274 + series - log(below);
}

// How many events happen where `mean` are expected. Below 10 uniforms are multiplied until they
// fall below exp(-mean); from there on Hoermann's transformed rejection (PTRS). Further words than
// the first four come from the counter's other streams.
__device__ __forceinline__ double poisson(double mean, uint64_t seed, uint64_t counter) {
  if (!(mean >= 0.0)) return __longlong_as_double(0x7ff8000000000000ll);  // NaN
  if (mean > 1e15) return mean;  // the deviation is lost in rounding; and infinity
  uint64_t stream = 0;
  if (mean < 10.0) {
    const double bound = exp(-mean);
    double product = 1.0;
    for (int events = 0;; events += 4, ++stream) {
      const Words words = philox(seed, counter, stream);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        product *= (static_cast<double>(words.word[i]) + 0.5) * 0x1p-32;
        if (product <= bound) return events + i;
      }
    }
  }
  const double log_mean = log(mean);
  const double b = 0.931 + 2.53 * sqrt(mean);
  const double a = -0.059 + 0.02483 * b;
  const double log_inverse_alpha = log(1.1239 + 1.1328 / (b - 3.4));
  const double box = 0.9277 - 3.6224 / (b - 2.0);
  for (;; ++stream) {
    const Uniforms<double> uniforms{philox(seed, counter, stream)};
    const double u = uniforms.centred(0), v = uniforms.above_zero(1);
    const double margin = 0.5 - fabs(u);
    const double events = floor((2.0 * a / margin + b) * u + mean + 0.43);
    if (margin >= 0.07 && v <= box) return events;
    if (events < 0.0 || (margin < 0.013 && v > margin)) continue;
    const double accept = log(v) + log_inverse_alpha - log(a / (margin * margin) + b);
    if (accept <= events * log_mean - mean - log_factorial(events)) return events;
  }
}

// ---------------------------------------------------------------------------- kernels

// state = {seed, offset}
template <typename U>
__global__ void set_state(U seed, U offset, U* __restrict__ state) {
  state[0] = seed;
  state[1] = offset;
}

// ticket = state; state.offset += counters. Atomic, as several streams may draw.
template <typename U>
__global__ void take_ticket(U* __restrict__ state, U counters, U* __restrict__ ticket) {
  ticket[0] = state[0];
  ticket[1] = atomicAdd(state + 1, counters);
}

template <typename T, typename A, typename D>
__global__ void __launch_bounds__(256)
    fill_real(const uint64_t* __restrict__ ticket, A a, A b, int64_t count, T* __restrict__ y) {
  constexpr int N = Uniforms<A>::count;
  const uint64_t seed = ticket[0], offset = ticket[1];
  const int64_t groups = (count + N - 1) / N;
  GRID_STRIDE(group, groups) {
    A values[N];
    D::draw(Uniforms<A>{philox(seed, offset + group)}, a, b, values);
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; ++i) pack[i] = D::template stored<T>(values[i], a, b);
    put(y, group, count, pack);
  }
}

// y = 1 where the word is below `threshold` = p 2^32, else 0
template <typename T>
__global__ void __launch_bounds__(256)
    fill_choices(const uint64_t* __restrict__ ticket, uint64_t threshold, int64_t count,
                 T* __restrict__ y) {
  constexpr int N = sizeof(T) == 8 ? 2 : 4;
  const uint64_t seed = ticket[0], offset = ticket[1];
  const int64_t groups = (count + 3) / 4;
  const T one = Made<T>::of(1), zero = Made<T>::of(0);
  GRID_STRIDE(group, groups) {
    const Words words = philox(seed, offset + group);
#pragma unroll
    for (int part = 0; part < 4 / N; ++part) {
      Pack<T, N> pack;
#pragma unroll
      for (int i = 0; i < N; ++i) pack[i] = words.word[part * N + i] < threshold ? one : zero;
      put(y, group * (4 / N) + part, count, pack);
    }
  }
}

// y = 1 where a uniform is below its own p, else 0
template <typename T, typename A>
__global__ void __launch_bounds__(256)
    choose_each(const uint64_t* __restrict__ ticket, const A* __restrict__ p, int64_t count,
                T* __restrict__ y) {
  constexpr int N = Uniforms<A>::count;
  const uint64_t seed = ticket[0], offset = ticket[1];
  const int64_t groups = (count + N - 1) / N;
  const T one = Made<T>::of(1), zero = Made<T>::of(0);
  GRID_STRIDE(group, groups) {
    const Uniforms<A> u{philox(seed, offset + group)};
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int64_t at = group * N + i;
      if (at < count) y[at] = u.below_one(i) < p[at] ? one : zero;
    }
  }
}

// y = low + an integer of [0, size); size 0 stands for 2^64, all that a word holds
template <typename T, int BITS>
__global__ void __launch_bounds__(256)
    fill_integers(const uint64_t* __restrict__ ticket, int64_t low, uint64_t size, int64_t count,
                  T* __restrict__ y) {
  static_assert(BITS == 32 || BITS == 64, "words of 32 or 64 bits");
  constexpr int N = 128 / BITS;
  const uint64_t seed = ticket[0], offset = ticket[1];
  const int64_t groups = (count + N - 1) / N;
  GRID_STRIDE(group, groups) {
    const Words words = philox(seed, offset + group);
    constexpr int PART = N * sizeof(T) <= 16 ? N : 16 / sizeof(T);
#pragma unroll
    for (int part = 0; part < N / PART; ++part) {
      Pack<T, PART> pack;
#pragma unroll
      for (int k = 0; k < PART; ++k) {
        const int i = part * PART + k;
        uint64_t above;
        if constexpr (BITS == 32) {
          above = __umulhi(words.word[i], static_cast<uint32_t>(size));
        } else {
          const uint64_t word =
              static_cast<uint64_t>(words.word[2 * i]) << 32 | words.word[2 * i + 1];
          above = size == 0 ? word : __umul64hi(word, size);
        }
        pack[k] = Made<T>::of(static_cast<int64_t>(static_cast<uint64_t>(low) + above));
      }
      put(y, group * (N / PART) + part, count, pack);
    }
  }
}

template <typename T, typename A>
__global__ void __launch_bounds__(256)
    fill_poisson(const uint64_t* __restrict__ ticket, const T* __restrict__ means, int64_t count,
                 T* __restrict__ y) {
  const uint64_t seed = ticket[0], offset = ticket[1];
  GRID_STRIDE(i, count) {
    y[i] = Made<T>::of(poisson(static_cast<A>(widen(means[i])), seed, offset + i));
  }
}

// Indices drawn with the probabilities `weights` (rows, n), whose cumulative sums are `sums`: the
// first whose sum lies above u times the total. Sums that a parallel scan made need not be flat
// where a weight is zero, so such an index moves to a neighbour with a weight.
template <typename A>
__global__ void __launch_bounds__(256)
    search_rows(const uint64_t* __restrict__ ticket, const A* __restrict__ weights,
                const A* __restrict__ sums, int64_t rows, int64_t n, int64_t samples,
                int64_t* __restrict__ y) {
  const uint64_t seed = ticket[0], offset = ticket[1];
  GRID_STRIDE(i, rows * samples) {
    const int64_t row = i / samples * n;
    const A total = sums[row + n - 1];
    const A wanted = Uniforms<A>{philox(seed, offset + i)}.below_one(0) * total;
    int64_t low = 0, high = n - 1;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (sums[row + middle] > wanted) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    while (low > 0 && !(weights[row + low] > A(0))) --low;
    while (low < n - 1 && !(weights[row + low] > A(0))) ++low;
    y[i] = low;
  }
}
