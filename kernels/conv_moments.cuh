// The moments of a convolution's results, output by output, while they are in registers: each
// thread's exactly, joined over its warp and over the items of its block without cancellation
// (Chan et al., "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
// On an NVIDIA H200, 2026-11-23, 3x3, 512 images, us without / with moments / of a pass of their own:
// TF32 64x32x32 134 / 140 / 35, 128x16x16 109 / 113 / 20, 256x8x8 101 / 105 / 8, 512x4x4 86 / 88 / 6;
// bfloat16 71 / 80 / 22, 60 / 65 / 10, 53 / 57 / 8, 47 / 49 / 6.

// Joins two times HALF pairs of moments, each of as many values, with those of the lane whose
// number differs by `step`: a lane keeps HALF of them. share: half the count of one.
template <int HALF, int N>
__device__ __forceinline__ void fold(float (&mean)[N], float (&square)[N], int step, float share) {
  const bool upper = threadIdx.x & step;
#pragma unroll
  for (int k = 0; k < HALF; ++k) {
    const float m = upper ? mean[k + HALF] : mean[k], s = upper ? square[k + HALF] : square[k];
    const float other =
        __shfl_xor_sync(0xffffffffu, upper ? mean[k] : mean[k + HALF], step);
    const float squares =
        __shfl_xor_sync(0xffffffffu, upper ? square[k] : square[k + HALF], step);
    const float apart = other - m;
    mean[k] = 0.5f * (m + other);
    square[k] = s + squares + apart * apart * share;
  }
}

// Makes sums what is stored: with the bias, rounded.
template <typename T, int BN, int PIECES, int PIECE>
__device__ __forceinline__ void settle(float (&sums)[PIECES][BN * PIECE / 128], const T* bias,
                                       int column, int outputs) {
  constexpr int SUMS = BN * PIECE / 128, OWN = PIECE > 64 ? 2 : BN / 4;
  const int lane = threadIdx.x % 32;
  if (bias != nullptr) {
#pragma unroll
    for (int k = 0; k < OWN; ++k) {
      const int n = column + (PIECE > 64 ? threadIdx.x % 128 / 32 * 16 + lane / 4 + k * 8
                                         : k / 2 * 8 + lane % 4 * 2 + k % 2);
      const float more = n < outputs ? widen(bias[n]) : 0.0f;
#pragma unroll
      for (int i = 0; i < PIECES; ++i) {
#pragma unroll
        for (int at = 0; at < SUMS; ++at) {
          if ((PIECE > 64 ? at / 2 % 2 : at / 4 * 2 + at % 2) == k) sums[i][at] += more;
        }
      }
    }
  }
  if constexpr (sizeof(T) == 2) {
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
#pragma unroll
      for (int at = 0; at < SUMS; at += 2) {
        const uint32_t both = pack_16<T>(sums[i][at], sums[i][at + 1]);
        const Pack<T, 2> pair = *reinterpret_cast<const Pack<T, 2>*>(&both);
        sums[i][at] = widen(pair[0]);
        sums[i][at + 1] = widen(pair[1]);
      }
    }
  }
}

// The outputs that a thread answers for. Products as in conv2d_hopper, of warps: TURNED, a thread's
// sums[i][4 j + 2 h + v] are of output `lane / 4 + 8 h` of 16, else of `8 j + lane % 4 * 2 + v`.
template <int BN, int PIECES, int PIECE>
struct Tally {
  static constexpr bool TURNED = PIECE > 64;
  static constexpr int OWN = TURNED ? 2 : BN / 32, SUMS = BN * PIECE / 128;
  static constexpr int EACH = TURNED ? PIECES * PIECE / 4 : 2 * PIECES;  // of a thread
  static constexpr int FRESH = EACH * (TURNED ? 4 : 8);                  // of an item
  float seen = 0, mean[OWN] = {}, square[OWN] = {};

  // The output of number k that this thread answers for, of the block's.
  static __device__ __forceinline__ int output(int k) {
    const int lane = threadIdx.x % 32;
    if constexpr (TURNED) return threadIdx.x % 128 / 32 * 16 + lane / 4 + 8 * k;
    return 32 * k + 8 * (lane / 8 % 2 + lane / 16 * 2) + lane % 4 * 2 + lane / 4 % 2;
  }

  __device__ __forceinline__ void join(int k, float fresh_mean, float fresh_square, float share) {
    const float apart = fresh_mean - mean[k];
    mean[k] += apart * share;
    square[k] += fresh_square + apart * apart * seen * share;
  }

  // Takes an item's results.
  __device__ __forceinline__ void add(const float (&sums)[PIECES][SUMS]) {
    const float share = FRESH / (seen + FRESH);
    if constexpr (TURNED) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float m, s, some[4] = {}, squares[4] = {};
#pragma unroll
        for (int i = 0; i < PIECES; ++i) {
#pragma unroll
          for (int j = 0; j < SUMS / 2; ++j) some[j % 4] += sums[i][j / 2 * 4 + 2 * h + j % 2];
        }
        m = (some[0] + some[1] + (some[2] + some[3])) * (1.0f / EACH);
#pragma unroll
        for (int i = 0; i < PIECES; ++i) {
#pragma unroll
          for (int j = 0; j < SUMS / 2; ++j) {
            const float step = sums[i][j / 2 * 4 + 2 * h + j % 2] - m;
            squares[j % 4] += step * step;
          }
        }
        s = squares[0] + squares[1] + (squares[2] + squares[3]);
#pragma unroll
        for (int step = 1; step < 4; step *= 2) {
          const float other = __shfl_xor_sync(0xffffffffu, m, step), apart = other - m;
          s += __shfl_xor_sync(0xffffffffu, s, step);
          s += apart * apart * (EACH * step * 0.5f);
          m = 0.5f * (m + other);
        }
        join(h, m, s, share);
      }
    } else {
#pragma unroll
      for (int k = 0; k < OWN; ++k) {
        float m[8], s[8];
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          const int at = 4 * (4 * k + n / 2) + n % 2;
          m[n] = 0, s[n] = 0;
#pragma unroll
          for (int i = 0; i < PIECES; ++i) m[n] += sums[i][at] + sums[i][at + 2];
          m[n] *= 1.0f / EACH;
#pragma unroll
          for (int i = 0; i < PIECES; ++i) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              const float step = sums[i][at + 2 * h] - m[n];
              s[n] += step * step;
            }
          }
        }
        fold<4>(m, s, 16, EACH * 0.5f);
        fold<2>(m, s, 8, EACH);
        fold<1>(m, s, 4, EACH * 2.0f);
        join(k, m[0], s[0], share);
      }
    }
    seen += FRESH;
  }

  // Writes them as (3, rows, outputs): counts, means, sums of squared deviations. `number` is the
  // first of the block's outputs, `block` its place among the `blocks` of these.
  __device__ __forceinline__ void write(float* __restrict__ to, int blocks, int outputs, int block,
                                        int number) const {
    constexpr int ROWS = TURNED ? 2 : 8;  // of a block
    const int row = block * ROWS + threadIdx.x / (256 / ROWS);
    const int64_t plane = static_cast<int64_t>(blocks) * ROWS * outputs;
    if (TURNED && threadIdx.x % 4 != 0) return;
#pragma unroll
    for (int k = 0; k < OWN; ++k) {
      const int n = number + output(k);
      if (n >= outputs) continue;
      float* const at = to + static_cast<int64_t>(row) * outputs + n;
      at[0] = seen;
      at[plane] = mean[k];
      at[2 * plane] = square[k];
    }
  }
};
