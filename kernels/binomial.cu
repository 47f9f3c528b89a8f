// Binomial numbers, drawn by counter from a ticket, each of its own count and probability.
//
// Op:          none; backends/cupy/random.py draws with it
// Math:        how many of n trials succeed with probability p each; of p > 1/2 the failures are
//              counted. r = min(p, 1 - p): inversion where n r < 10, rejection (BTRS) elsewhere. 0
//              where n or p is at most 0, n where p is at least 1 or n is infinite, NaN of NaN; no
//              gradients
// Layout:      contiguous arrays of one shape
// Launch:      grid min(ceil(n / 256), 2^20), block 256, no shared memory; a number each thread
// Cost:        n (2 sizeof(T)) bytes read and n sizeof(T) written; it waits for double-precision
//              arithmetic: inversion takes n r + 1 steps of a division each, rejection 1.2 attempts
// Types:       float32 and float64, drawn in float64
// Determinism: bit for bit for a seed, whatever the grid
// Limits:      float16 and bfloat16 are declined; above 2^53 trials the numbers have gaps
// Variants:    none
// Instances:   fill_binomial<float, double>: 80 registers, 0 bytes shared
//              fill_binomial<double, double>: 80 registers, 0 bytes shared
// Source:      Hoermann, "The generation of binomial random variates" (1993), algorithm BTRS;
//              Kachitvichyanukul and Schmeiser, "Binomial random variate generation" (1988), section
//              2, for the inversion
// Measured:    not yet

#include "common.cuh"
#include "philox.cuh"
#include "uniforms.cuh"

// ---------------------------------------------------------------------------- device helpers

// log(k!) less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2, to 1e-10. Below 10 the
// series is taken at 10, and the differences are added on the way down.
__device__ __forceinline__ double stirling_tail(double k) {
  double steps = 0.0;
#pragma unroll 1
  for (; k < 10.0; k += 1.0) steps += (k + 1.5) * log1p(1.0 / (k + 1.0)) - 1.0;
  const double r = 1.0 / (k + 1.0), square = r * r;
  return steps + r * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0)));
}

// Inversion: the chances of 0, 1, ... are taken from a uniform until nothing is left of it. What
// rounding left after 110 of them, whose chances add up to less than 1e-70, is drawn again.
__device__ __forceinline__ double binomial_small(double n, double p, uint64_t seed,
                                                 uint64_t counter) {
  const double odds = p / (1.0 - p);
  const double none = exp(n * log1p(-p));
  const double most = fmin(n, 110.0);
#pragma unroll 1
  for (uint64_t stream = 0;; ++stream) {
    double u = Uniforms<double>{philox(seed, counter, stream)}.below_one(0);
    double chance = none;
#pragma unroll 1
    for (double k = 0.0; k <= most; k += 1.0) {
      if (u < chance) return k;
      u -= chance;
      chance *= odds * (n - k) / (k + 1.0);
    }
  }
}

// Transformed rejection for n p >= 10, p <= 1/2. The logarithm of the chance of k relative to that
// of the mode m is, with a = (m + 1) / (odds (n - m + 1)) and d = k - m,
//   -d log(a) + (n - k + 1/2) log(1 + d / (n - k + 1)) - (k + 1/2) log(1 + d / (m + 1))
// and the tails: Hoermann's sum in an order in which large terms do not cancel.
__device__ __forceinline__ double binomial_large(double n, double p, uint64_t seed,
                                                 uint64_t counter) {
  const double odds = p / (1.0 - p);
  const double deviation = sqrt(n * p * (1.0 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double centre = n * p + 0.5;
  const double box = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = floor((n + 1.0) * p);
  const double slope = log((mode + 1.0) / (odds * (n - mode + 1.0)));
  const double at_mode = stirling_tail(mode) + stirling_tail(n - mode);
#pragma unroll 1
  for (uint64_t stream = 0;; ++stream) {
    const Uniforms<double> uniforms{philox(seed, counter, stream)};
    const double u = uniforms.centred(0), v = uniforms.above_zero(1);
    const double margin = 0.5 - fabs(u);
    const double k = floor((2.0 * a / margin + b) * u + centre);
    if (!(k >= 0.0 && k <= n)) continue;
    if (margin >= 0.07 && v <= box) return k;
    const double d = k - mode;
    const double bound = at_mode - d * slope + (n - k + 0.5) * log1p(d / (n - k + 1.0)) -
                         (k + 0.5) * log1p(d / (mode + 1.0)) - stirling_tail(k) -
                         stirling_tail(n - k);
    if (log(v * alpha / (a / (margin * margin) + b)) <= bound) return k;
  }
}

__device__ __forceinline__ double binomial(double n, double p, uint64_t seed, uint64_t counter) {
  if (n <= 0.0 || p <= 0.0) return 0.0;
  if (n != n || p != p) return n + p;
  if (p >= 1.0 || isinf(n)) return n;
  const double rare = p <= 0.5 ? p : 1.0 - p;
  const double k = n * rare < 10.0 ? binomial_small(n, rare, seed, counter)
                                   : binomial_large(n, rare, seed, counter);
  return p <= 0.5 ? k : n - k;
}

// ---------------------------------------------------------------------------- kernels

template <typename T, typename A>
__global__ void __launch_bounds__(256, 3)
    fill_binomial(const uint64_t* __restrict__ ticket, const T* __restrict__ counts,
                  const T* __restrict__ chances, int64_t count, T* __restrict__ y) {
  const uint64_t seed = ticket[0], offset = ticket[1];
  GRID_STRIDE(i, count) {
    const A n = static_cast<A>(counts[i]), p = static_cast<A>(chances[i]);
    y[i] = static_cast<T>(binomial(n, p, seed, offset + i));
  }
}
