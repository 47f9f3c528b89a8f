// Weights of convolutions, from rows of (channel, tap) to rows of (tap, channel).
//
// Op:          conv, conv_backward_input, cast_weight
// Math:        y[output, tap, channel] = x[output, channel, tap]
// Layout:      x and y dense, at multiples of 16 bytes; channels whole packs of 16 bytes of y
// Launch:      grid (outputs * channels / (256 EACH)), block 256, shared 256 EACH taps sizeof(T)
//              bytes; EACH = 4 / sizeof(U) channels a thread
// Cost:        bound by memory: x read once, y written once
// Types:       float, half, bfloat16 -> the same or another of them
// Determinism: bit for bit
// Limits:      double, 2^31 weights, windows that fill more than 48 KB
// Variants:    none
// Instances:   conv2d_taps<float,float>: 40 registers, 0 bytes shared
//   conv2d_taps<float,__nv_bfloat16>: 40 registers, 0 bytes shared
//   conv2d_taps<float,__half>: 40 registers, 0 bytes shared
//   conv2d_taps<__half,__half>: 40 registers, 0 bytes shared
// Source:      a transposition through shared memory
// Measured:    NVIDIA H200, 2026-11-23, float, 3x3, 64, 128, 256, 512 channels and outputs: 2.4,
//              2.5, 3.0, 5.0 us (conv2d_pack: 12.7 for the last); to bfloat16 4.6 for the last

#include "common.cuh"

// ---------------------------------------------------------------------------- device helpers

constexpr int THREADS = 256;

// ---------------------------------------------------------------------------- kernels

template <typename T, typename U>
__global__ void __launch_bounds__(THREADS)
    conv2d_taps(const T* __restrict__ x, int count, int channels, int taps, U* __restrict__ y) {
  constexpr int EACH = 4 / sizeof(U), VEC = 16 / sizeof(T);
  extern __shared__ __align__(16) char shared[];
  T* const values = reinterpret_cast<T*>(shared);  // THREADS EACH channels, of any outputs
  const int q0 = blockIdx.x * (THREADS * EACH), here = min(THREADS * EACH, count - q0);
  x += static_cast<int64_t>(q0) * taps;
#pragma unroll 4
  for (int i = threadIdx.x * VEC; i < here * taps; i += THREADS * VEC) {
    store(values + i, load<VEC>(x + i));
  }
  __syncthreads();
  const int q = threadIdx.x * EACH;
  if (q >= here) return;
  const int output = (q0 + q) / channels, channel = q0 + q - output * channels;
  y += static_cast<int64_t>(output) * taps * channels + channel;
#pragma unroll 4
  for (int tap = 0; tap < taps; ++tap) {
    Pack<U, EACH> out;
#pragma unroll
    for (int v = 0; v < EACH; ++v) out[v] = narrow<U>(widen(values[(q + v) * taps + tap]));
    store(y + tap * channels, out);
  }
}
