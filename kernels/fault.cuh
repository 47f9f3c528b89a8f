// What a kernel finds wrong with values goes into memory of the host (backends/cupy/device_asserts.py).

#pragma once

// Called by any number of threads: one of the values stays. `what` comes last, as the host looks at
// it first, but it looks only after it has waited for the kernel.
__device__ __forceinline__ void report(int64_t* fault, int64_t what, int64_t value, int64_t size) {
  volatile int64_t* word = fault;
  word[1] = value;
  word[2] = size;
  word[0] = what;
}

constexpr int64_t FAULT_INDEX = 1, FAULT_CLASS = 2;
