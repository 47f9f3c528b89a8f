// What the passes of attention are told: sizes and strides, masks, the factors of dropout.

// Sizes, and strides in elements; the host packs it as one row of 64-bit integers.
struct Problem {
  int64_t heads, groups, length, size;  // of q; query heads of a key head; rows of q; rows of k
  int64_t width, value_width;           // of q and k; of v: whole packs
  int64_t threshold;                    // words of philox below it keep a weight
  int64_t q[3], k[3], v[3], g[3];       // batch, head, row; g: of out in the forward pass
  int64_t first[3], second[3];          // of the gradients
  int64_t mask[4];                      // batch, head, row, column
};

// A distance between rows or columns as an int, which is only compared with numbers up to MOST.
template <int MOST>
__device__ __forceinline__ int at_most(int64_t distance) {
  return static_cast<int>(distance < -MOST ? -MOST : (distance > MOST ? MOST : distance));
}

// A score with its mask: 0 is none, 1 keeps where it is true, 2 is added, 3 is added and wants a
// gradient. In powers of two.
template <typename T, int MASK>
__device__ __forceinline__ float masked(float score, const bool* keep, const T* bias, int at) {
  if constexpr (MASK == 1) return keep[at] ? score : -infinity();
  if constexpr (MASK >= 2) return score + widen(bias[at]) * LOG2_E;
  return score;
}

// What dropout multiplies weights with. Rows of weights are padded to whole counters.
struct Dropped {
  uint64_t seed, first, threshold;
  int64_t counters;  // of a row
  float factor;
  __device__ __forceinline__ Dropped(const uint64_t* ticket, const Problem& p, float factor)
      : seed(ticket[0]), first(ticket[1]), threshold(p.threshold), counters((p.size + 3) / 4),
        factor(factor) {}
  __device__ __forceinline__ Words words(int64_t row, int64_t column) const {
    return philox(seed, first + row * counters + column / 4);
  }
  __device__ __forceinline__ float of(const Words& words, int column) const {
    const uint32_t a = column & 1 ? words.word[1] : words.word[0];
    const uint32_t b = column & 1 ? words.word[3] : words.word[2];
    return (column & 2 ? b : a) < threshold ? factor : 0.0f;
  }
};
