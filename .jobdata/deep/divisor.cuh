// Divisions of indices by what does not change during a launch.

// A division by what does not change, for dividends below 2^31.
struct Divisor {
  uint32_t value, multiplier, shift;
  __device__ __forceinline__ int of(int x) const {
    const uint32_t high = __umulhi(static_cast<uint32_t>(x), multiplier);
    return value == 1 ? x : static_cast<int>(high >> shift);
  }
};
