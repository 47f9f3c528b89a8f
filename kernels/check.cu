// Looks whether indices, classes or numbers are in range, and tells the host where one is not.
//
// Op:          none: the words `check_index`, `check_labels`, `check_range` of the CuPy backend, and
//              what CuPy's own indexing would wrap around
// Math:        low <= x[i] < high or x[i] = skipped; of numbers low <= x[i] <= high, which NaN is not
// Layout:      x contiguous
// Launch:      grid min(ceil(n / 256), 1024), block 256; no shared memory
// Cost:        the bytes of x, once: bound by memory, and by the launch where x is small
// Types:       index int32, int64 and narrower; numbers float32 and float64
// Determinism: of several faults any one is told
// Limits:      the host learns of a fault when it next waits for the device
// Variants:    none
// Instances:   check_index<int>: 32 registers, 0 bytes shared
//              check_index<long long>: 32 registers, 0 bytes shared
//              check_range<float>: 32 registers, 0 bytes shared
//              check_range<double>: 32 registers, 0 bytes shared
// Source:      none
// Measured:    not yet

#include "common.cuh"
#include "fault.cuh"

// ---------------------------------------------------------------------------- device helpers

// NaN is not.
template <typename T>
__device__ __forceinline__ bool within(T x, T low, T high) {
  return x >= low && x <= high;
}

// ---------------------------------------------------------------------------- kernels

template <typename I>
__global__ void __launch_bounds__(256)
    check_index(const I* __restrict__ x, int64_t count, int64_t low, int64_t high, int64_t skipped,
                int64_t what, int64_t* fault) {
  GRID_STRIDE(i, count) {
    const int64_t value = x[i];
    if (!within(value, low, high - 1) && value != skipped) report(fault, what, value, high);
  }
}

template <typename T>
__global__ void __launch_bounds__(256)
    check_range(const T* __restrict__ x, int64_t count, T low, T high, int64_t what,
                int64_t* fault) {
  GRID_STRIDE(i, count) {
    if (!within(x[i], low, high)) report(fault, what, 0, 0);
  }
}
