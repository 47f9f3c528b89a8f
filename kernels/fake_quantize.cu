// Fake quantization: values rounded to the nearest of a range of levels, and whether they were in it.
//
// Op:          fake_quantize_per_tensor_affine, fake_quantize_per_channel_affine
// Math:        q = rint(x / scale) + zero_point, or rint(x / scale + zero_point) where that is a
//              float; y = (clamp(q, quant_min, quant_max) - zero_point) scale
//              inside = quant_min <= q <= quant_max; gx = inside g is a generated kernel
// Layout:      dense in any order; the axis of scales has the stride `inner`
// Launch:      grid min(ceil(n / (256 VEC)), 2^20), block 256, no shared memory
// Cost:        2 sizeof(T) + 1 bytes an element: bound by memory
// Types:       float16, bfloat16, float32 -> float32
// Determinism: bit for bit
// Limits:      float64, arrays with gaps
// Variants:    VEC: 16 bytes where memory is aligned and packs have one scale each, else 1
// Instances:   fake_quantize_forward<float, int64_t, 4>: 32 registers, 0 bytes shared
//              fake_quantize_forward<float, int64_t, 1>: 32 registers, 0 bytes shared
//              fake_quantize_forward<float, float, 4>: 32 registers, 0 bytes shared
//              fake_quantize_forward<__half, int64_t, 8>: 32 registers, 0 bytes shared
//              fake_quantize_forward<__half, float, 1>: 32 registers, 0 bytes shared
//              fake_quantize_forward<__nv_bfloat16, int64_t, 8>: 32 registers, 0 bytes shared
// Source:      Jacob et al., "Quantization and Training of Neural Networks for Efficient
//              Integer-Arithmetic-Only Inference" (CVPR 2018)
// Measured:    not yet

#include "common.cuh"

// ---------------------------------------------------------------------------- device helpers

// The level of a quotient, before it is clamped. The product is rounded before a float is added.
__device__ __forceinline__ float level(float x, float inverse, int64_t zero_point) {
  return rintf(x * inverse) + static_cast<float>(zero_point);
}
__device__ __forceinline__ float level(float x, float inverse, float zero_point) {
  return rintf(__fadd_rn(__fmul_rn(x, inverse), zero_point));
}

// Which of `channels` the element at place i of memory belongs to.
__device__ __forceinline__ int64_t channel_of(int64_t i, int64_t inner, int64_t channels) {
  if (channels == 1) return 0;
  if (i >> 32 == 0 && inner >> 32 == 0) {
    return static_cast<uint32_t>(i) / static_cast<uint32_t>(inner) %
           static_cast<uint32_t>(channels);
  }
  return i / inner % channels;
}

// ---------------------------------------------------------------------------- kernels

// VEC divides n and, with several channels, inner.
template <typename T, typename Z, int VEC>
__global__ void __launch_bounds__(256)
    fake_quantize_forward(const T* __restrict__ x, const float* __restrict__ scale,
                          const Z* __restrict__ zero_point, float quant_min, float quant_max,
                          int64_t inner, int64_t channels, int64_t n, T* __restrict__ y,
                          bool* __restrict__ inside) {
  GRID_STRIDE(pack, n / VEC) {
    const int64_t i = pack * VEC, channel = channel_of(i, inner, channels);
    const float step = scale[channel], inverse = 1.0f / step;
    const Z zero = zero_point[channel];
    Pack<T, VEC> values = load<VEC>(x + i);
    Pack<bool, VEC> within;
#pragma unroll
    for (int k = 0; k < VEC; ++k) {
      const float q = level(widen(values[k]), inverse, zero);
      within[k] = q >= quant_min && q <= quant_max;
      const float kept = q >= quant_min ? fminf(q, quant_max) : quant_min;  // the least for NaN
      values[k] = narrow<T>((kept - static_cast<float>(zero)) * step);
    }
    store(y + i, values);
    store(inside + i, within);
  }
}
