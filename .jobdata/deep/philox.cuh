// Philox 4x32-10: random numbers as a function of a key and a counter, with no state of their own.
// Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
//
// A ticket is two 64-bit numbers in device memory: the seed, and the offset of the first counter
// that a draw may use. Draw i of a launch uses the counter offset + i / 4 and its word i % 4, so
// that a backward pass which reads the same ticket sees the same numbers.

struct Words {
  unsigned int word[4];
};

__device__ __forceinline__ Words philox(unsigned long long seed, unsigned long long counter,
                                        unsigned long long stream = 0) {
  unsigned int k0 = static_cast<unsigned int>(seed), k1 = static_cast<unsigned int>(seed >> 32);
  unsigned int c0 = static_cast<unsigned int>(counter);
  unsigned int c1 = static_cast<unsigned int>(counter >> 32);
  unsigned int c2 = static_cast<unsigned int>(stream);
  unsigned int c3 = static_cast<unsigned int>(stream >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned int h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
    const unsigned int h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0;
    c1 = l1;
    c2 = h0 ^ c3 ^ k1;
    c3 = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return Words{{c0, c1, c2, c3}};
}

// Uniform in [0, 1) from the upper 24 bits.
__device__ __forceinline__ float uniform24(unsigned int word) {
  return static_cast<float>(word >> 8) * 5.9604644775390625e-8f;
}
