// The uniforms that one counter of Philox gives: 4 floats or 2 doubles.

template <typename A>
struct Uniforms;
template <>
struct Uniforms<float> {
  static constexpr int count = 4;
  Words words;
  // in [0, 1), 24 bits
  __device__ __forceinline__ float below_one(int i) const { return uniform24(words.word[i]); }
  // in (0, 1], 32 bits
  __device__ __forceinline__ float above_zero(int i) const {
    return fmaf(static_cast<float>(words.word[i]), 0x1p-32f, 0x1p-33f);
  }
  // in (-1/2, 1/2), symmetric
  __device__ __forceinline__ float centred(int i) const {
    const int whole = static_cast<int>(words.word[i] >> 8) - (1 << 23);
    return (static_cast<float>(whole) + 0.5f) * 0x1p-24f;
  }
};
template <>
struct Uniforms<double> {
  static constexpr int count = 2;
  Words words;
  __device__ __forceinline__ int64_t bits53(int i) const {
    const uint64_t word = static_cast<uint64_t>(words.word[2 * i]) << 32 | words.word[2 * i + 1];
    return static_cast<int64_t>(word >> 11);
  }
  __device__ __forceinline__ double below_one(int i) const {
    return static_cast<double>(bits53(i)) * 0x1p-53;
  }
  __device__ __forceinline__ double above_zero(int i) const {
    return static_cast<double>(bits53(i) + 1) * 0x1p-53;
  }
  __device__ __forceinline__ double centred(int i) const {
    return (static_cast<double>(bits53(i) - (1ll << 52)) + 0.5) * 0x1p-53;
  }
};
