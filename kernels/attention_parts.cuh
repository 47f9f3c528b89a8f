// Single precision by products of half floats: numbers in two parts, what multiplies them.
//
// A number is unit (high + low): two half floats, 22 bits at least, and a power of two, which
// UNIT_ROWS rows share (those that the warp that multiplies them splits: 16). A row is at most 2^15
// long in units, so that what is 2^18 times shorter is still as exact; the rest is exact to
// 2^-40 of that length. Of the four products of parts the smallest is left out; the small ones are
// summed first. A tile has its high columns, then its low ones, and lies in panels as
// attention_sm90.cuh says.

constexpr int UNIT_ROWS = 64;

// Weights are kept 2^POWERS times as large, gradients of scores 2^GRADIENTS times, in units of the
// result's gradient and of the head's largest values: neither goes beyond 2^15 then.
constexpr int POWERS = 15, GRADIENTS = -16;

// 2^exponent, for exponents of ordinary numbers.
__device__ __forceinline__ float two_to_the(int exponent) {
  return __int_as_float((exponent + 127) << 23);
}

// A pair of numbers in two parts.
struct Parts {
  uint32_t high, low;
  __device__ __forceinline__ Parts(float x, float y) {
    const __half2 upper = __floats2half2_rn(x, y);
    const float2 back = __half22float2(upper);
    high = *reinterpret_cast<const uint32_t*>(&upper);
    low = pack_16<__half>(x - back.x, y - back.y);
  }
};

// The exponent of the unit of some rows. A lane has eight numbers of each of ROWS of them, LANES
// lanes a row; reduce(x) is the largest x of all threads whose rows share the unit.
template <int LANES, int ROWS, typename F>
__device__ __forceinline__ int unit_exponent(const float (&values)[ROWS][8], F reduce) {
  float largest = 0.0f, longest = 0.0f;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float size = fabsf(values[r][e]);
      if (size < infinity()) largest = fmaxf(largest, size);
    }
  }
  // two_to_the(-exponent) has to be an ordinary number
  const int exponent = min(max((__float_as_int(reduce(largest)) >> 23) - 127, -100), 126);
  const float scale = two_to_the(-exponent);  // so that squares neither overflow nor vanish
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    float square = 0.0f;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float x = values[r][e] * scale;
      square = fmaf(x, x, square);
    }
    square = warp_reduce<Sum, LANES>(square);
    if (square < infinity()) longest = fmaxf(longest, square);
  }
  return exponent + max((__float_as_int(reduce(longest)) >> 23) - 127, 0) / 2 - 14;
}

// Eight numbers in units, and what is lost of them.
struct EightParts {
  Pack<uint32_t, 4> high, low;
  __device__ __forceinline__ EightParts(const float (&values)[8], float scale) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const Parts pair(values[2 * e] * scale, values[2 * e + 1] * scale);
      high[e] = pair.high;
      low[e] = pair.low;
    }
  }
};

// Eight numbers of a row, zeros where it is not `real` and from `width` on.
__device__ __forceinline__ void load_eight(float (&values)[8], const float* from, int column,
                                           int width, bool real) {
#pragma unroll
  for (int half = 0; half < 8; half += 4) {
    Pack<float, 4> four = {};
    if (real && column + half < width) four = load<4>(from + column + half);
#pragma unroll
    for (int e = 0; e < 4; ++e) values[half + e] = four[e];
  }
}

// A warp's 16 rows, from `own` on of a tile of ROWS, in parts; returns their unit.
template <int D, int ROWS>
__device__ __forceinline__ float split_rows(__half* tile, int own, const float* from,
                                            int64_t stride, int row, int length, int width) {
  constexpr int LANES = D / 8, STEP = 32 / LANES, STEPS = 16 / STEP;
  const int lane = threadIdx.x % 32, pack = lane % LANES, r0 = lane / LANES;
  float values[STEPS][8];
#pragma unroll
  for (int s = 0; s < STEPS; ++s) {
    const int i = row + r0 + s * STEP;
    load_eight(values[s], from + i * stride, pack * 8, width, i < length);
  }
  const int exponent = unit_exponent<LANES>(values, [](float x) { return warp_reduce<Max>(x); });
#pragma unroll
  for (int s = 0; s < STEPS; ++s) {
    const EightParts parts(values[s], two_to_the(-exponent));
    const int i = own + r0 + s * STEP;
    store<4>(reinterpret_cast<uint32_t*>(place_of<ROWS>(tile, i, pack)), parts.high);
    store<4>(reinterpret_cast<uint32_t*>(place_of<ROWS>(tile, i, D / 8 + pack)), parts.low);
  }
  return two_to_the(exponent);
}

// What makes powers of scores; not zero, which -infinity times would be NaN.
__device__ __forceinline__ float powers_of(float scale, float unit) {
  return fmaxf(scale * unit, 1e-36f);
}

// The largest of a head's units, by every warp on its own.
__device__ __forceinline__ float largest_unit(const float* units, int count) {
  float largest = 0.0f;
  for (int i = threadIdx.x % 32; i < count; i += 32) largest = fmaxf(largest, units[i]);
  return warp_reduce<Max>(largest);
}

// scores = left right^T over D columns: the warpgroup's 64 rows of a tile of ROWS, all N rows of
// `right`. Begins; the caller commits and waits.
template <int D, int ROWS, int N>
__device__ __forceinline__ void begin_rows_of_parts(float (&scores)[N / 2], const __half* left,
                                                    const __half* right) {
  const uint64_t a = k_major(left), b = k_major(right);
#pragma unroll
  for (int product = 2; product >= 0; --product) {
#pragma unroll
    for (int k = 0; k < D; k += 16) {
      const int within = k % PANEL * 2, column = k / PANEL * 128;
      const int of_left = column + (product == 2 ? 2 * D : 0);
      const int of_right = column + (product == 1 ? 2 * D : 0);
      wgmma<__half>(scores, advance(a, of_left * ROWS + within),
                    advance(b, of_right * N + within), product != 2 || k != 0);
    }
  }
}

// Scores as the left side of the product that follows them.
template <int N>
struct PartsOfScores {
  uint32_t high[N / 16][4], low[N / 16][4];
  __device__ __forceinline__ explicit PartsOfScores(const float (&scores)[N / 2]) {
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Parts parts(scores[8 * k + 2 * i], scores[8 * k + 2 * i + 1]);
        high[k][i] = parts.high;
        low[k][i] = parts.low;
      }
    }
  }
};

// sums = weights right: the weights' N columns are the rows of `right`; all of its D columns, or
// those from a panel on. Begins.
template <int D, int N, int COUNT>
__device__ __forceinline__ void begin_columns_of_parts(float (&sums)[COUNT],
                                                       const PartsOfScores<N>& weights,
                                                       const __half* right, int panel = 0) {
  const uint64_t high = mn_major(right + panel * N * PANEL, N * 128);
  const uint64_t low = advance(high, 2 * D * N);
#pragma unroll
  for (int k = 0; k < N / 16; ++k) {
    wgmma<__half, true>(sums, weights.low[k], advance(high, k * 2048), k != 0);
  }
#pragma unroll
  for (int k = 0; k < N / 16; ++k) {
    wgmma<__half, true>(sums, weights.high[k], advance(low, k * 2048), true);
  }
#pragma unroll
  for (int k = 0; k < N / 16; ++k) {
    wgmma<__half, true>(sums, weights.high[k], advance(high, k * 2048), true);
  }
}

// sums += unit part: the tensor core cuts its sums off, always towards zero, and so adds up only
// what passes at a time.
template <int COUNT>
__device__ __forceinline__ void add_part(float (&sums)[COUNT], const float (&part)[COUNT],
                                         float unit) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) sums[i] = fmaf(part[i], unit, sums[i]);
}

// 16 rows of sums that a warp holds. Row h of a lane is multiplied by factors[h].
template <int D>
__device__ __forceinline__ void store_floats(const float (&sums)[D / 2], const float (&factors)[2],
                                             float* to, int64_t stride, int row, int length,
                                             int width) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int i = row + 8 * h + lane / 4;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const int column = 8 * n + lane % 4 * 2;
      if (i < length && column < width) {
        Pack<float, 2> pair;
        pair[0] = sums[4 * n + 2 * h] * factors[h];
        pair[1] = sums[4 * n + 2 * h + 1] * factors[h];
        store<2>(to + i * stride + column, pair);
      }
    }
  }
}
