"""A small kernel file that keeps every rule, for the checks to be tried on."""

from __future__ import annotations

GOOD = """\
// Scales rows, forward and backward.
//
// Op:          scale_rows, scale_rows_backward
// Math:        y[i] = w * x[i]
//              gx[i] = w * g[i]
// Layout:      contiguous
// Launch:      grid ceil(n / 256), block 256, no shared memory
// Cost:        2 n sizeof(T) bytes, n FLOPs: bound by memory
// Types:       float, half -> float
// Determinism: bit for bit
// Limits:      none
// Variants:    one
// Instances:   scale_rows<float>: 24 registers, 0 bytes shared
//              scale_rows<__half>: 24 registers, 0 bytes shared
// Source:      none
// Measured:    not yet

#include <cuda_fp16.h>
#include "common.cuh"

// -------------------------------------------------------------------------- device helpers

template <typename T> __device__ T scaled(T x, float w) {
  return T(static_cast<acc_t>(x) * w);
}

// -------------------------------------------------------------------------- kernels

template <typename T>
__global__ void __launch_bounds__(256)
    scale_rows(const T* __restrict__ x, float w, long long n, T* __restrict__ y) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = scaled(x[i], w);
}
"""
HEADERS = {"common.cuh": "// Accumulators.\ntypedef float acc_t;\n"}
