// Attention's tiles for products of warpgroups: how they arrive, are multiplied, and leave.
//
// A tile has ROWS rows of D two-byte values, in panels of 64 columns, which lie one after the other
// as wgmma.cuh's tiles do. Scores and sums are accumulators of a warpgroup's 64 rows: of the 16
// rows of a warp a lane has rows lane / 4 and lane / 4 + 8, columns lane % 4 * 2 and the next one
// of every 8.

constexpr int PANEL = 64;  // columns

// Sizes, and strides in elements; the host packs it as one row of 64-bit integers.
struct Heads {
  int64_t count, groups, length, size;  // heads of q; query heads of a key head; rows of q; of k
  int64_t width, value_width;           // of q and k; of v
  int64_t first[3], second[3];          // of the results: batch, head, row
};

// Which head a block serves, and which of its tiles, counted from the longest. Heads are in
// sections whose rows stay in L2; within a section the longest tiles begin first.
struct Place {
  int head, rank;
  __device__ __forceinline__ Place(int tiles, int section) {
    const int first = static_cast<int>(blockIdx.x) / (section * tiles) * section;
    const int heads = min(section, static_cast<int>(gridDim.x) / tiles - first);
    const int within = static_cast<int>(blockIdx.x) - first * tiles;
    head = first + within % heads;
    rank = within / heads;
  }
};

// Rows from `row` on of a head into a tile, with zeros beyond the matrix. One thread asks for it.
template <int D, int ROWS, typename T>
__device__ __forceinline__ void load_tile(T* tile, const TensorMap& map, Barrier* full, int row,
                                          int head, int batch) {
#pragma unroll
  for (int column = 0; column < D; column += PANEL) {
    load_box(tile + column * ROWS, map, full, column, row, head, batch);
  }
}

// Where a pack of 8 values of a tile lies.
template <int ROWS, typename T>
__device__ __forceinline__ T* place_of(T* tile, int row, int pack) {
  return tile + pack / 8 * ROWS * PANEL + swizzled_128(row, pack % 8 * 16) / 2;
}

// scores = left right^T over D columns: the warpgroup's 64 rows of a tile of ROWS, N rows of a tile
// of RIGHT_ROWS. Begins; the caller commits and waits.
template <int D, int ROWS, int N, int RIGHT_ROWS = N, typename T>
__device__ __forceinline__ void begin_rows(float (&scores)[N / 2], const T* left, const T* right) {
  const uint64_t a = k_major(left), b = k_major(right);
#pragma unroll
  for (int k = 0; k < D; k += 16) {
    const int panel = k / PANEL * 128, within = k % PANEL * 2;
    wgmma<T>(scores, advance(a, panel * ROWS + within),
             advance(b, panel * RIGHT_ROWS + within), k != 0);
  }
}

// -infinity to scores of columns behind the row; where rows are keys (KEYS), before it. `ahead`:
// the warp's first row less the first column.
template <int N, bool KEYS>
__device__ __forceinline__ void mask(float (&scores)[N / 2], int ahead) {
  const int lane = threadIdx.x % 32, limit = ahead + lane / 4 - lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const int place = i / 4 * 8 + i % 2 - i / 2 % 2 * 8;  // column less row, beside the lane's
    if (KEYS ? place < limit : place > limit) scores[i] = -infinity();
  }
}

// -infinity to scores of columns from `live` on.
template <int N>
__device__ __forceinline__ void mask_beyond(float (&scores)[N / 2], int live) {
  const int lane = threadIdx.x % 32, limit = live - lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    if (i / 4 * 8 + i % 2 >= limit) scores[i] = -infinity();
  }
}

// Scores as the left side of the product that follows them.
template <typename T, int N>
__device__ __forceinline__ void narrowed(uint32_t (&packed)[N / 16][4],
                                         const float (&scores)[N / 2]) {
#pragma unroll
  for (int k = 0; k < N / 16; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      packed[k][i] = pack_16<T>(scores[8 * k + 2 * i], scores[8 * k + 2 * i + 1]);
    }
  }
}

// sums += weights right: the weights' N columns are rows of `right`, a tile of RIGHT_ROWS. Begins.
template <int D, int N, int RIGHT_ROWS = N, typename T>
__device__ __forceinline__ void begin_columns(float (&sums)[D / 2],
                                              const uint32_t (&weights)[N / 16][4],
                                              const T* right) {
  const uint64_t b = mn_major(right, RIGHT_ROWS * 128);
#pragma unroll
  for (int k = 0; k < N / 16; ++k) wgmma<T, true>(sums, weights[k], advance(b, k * 2048), true);
}

// The softmax of a lane's two rows over columns that pass by: powers of two of the scores, less a
// base that follows the largest from afar, so that none lies above 2^MOST; when the base rises, the
// largest is 2^LARGEST.
template <int MOST, int LARGEST>
struct PassingSoftmax {
  float base[2] = {-infinity(), -infinity()}, total[2] = {0.0f, 0.0f};
  // Scores times `to_powers` become powers; `sums` are of those before.
  template <int N, int D>
  __device__ __forceinline__ void take_in(float (&scores)[N / 2], float to_powers,
                                          float (&sums)[D / 2]) {
    float peak[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      peak[h] = fmaxf(scores[2 * h], scores[2 * h + 1]);
#pragma unroll
      for (int n = 1; n < N / 8; ++n) {
        peak[h] = fmaxf(peak[h], fmaxf(scores[4 * n + 2 * h], scores[4 * n + 2 * h + 1]));
      }
      peak[h] = fmaxf(peak[h], __shfl_xor_sync(0xffffffffu, peak[h], 1));
      peak[h] = fmaxf(peak[h], __shfl_xor_sync(0xffffffffu, peak[h], 2)) * to_powers;
    }
    if (__any_sync(0xffffffffu, peak[0] > base[0] + MOST || peak[1] > base[1] + MOST)) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float higher = fmaxf(peak[h] - LARGEST, base[h]);
        const float shrink = power_of_two(base[h] - (higher == -infinity() ? 0.0f : higher));
        base[h] = higher;
        total[h] *= shrink;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          sums[4 * n + 2 * h] *= shrink;
          sums[4 * n + 2 * h + 1] *= shrink;
        }
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float minus = base[h] == -infinity() ? 0.0f : -base[h];
#pragma unroll
      for (int n = 0; n < N / 8; ++n) {
#pragma unroll
        for (int i = 4 * n + 2 * h; i < 4 * n + 2 * h + 2; ++i) {
          scores[i] = power_of_two(fmaf(scores[i], to_powers, minus));
          total[h] += scores[i];
        }
      }
    }
  }
  // What the rows' sums are to be multiplied by; lse of the warp's rows from `row` on is written.
  __device__ __forceinline__ void finish(float (&factors)[2], float* lse, int row, int length) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
      total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
      factors[h] = total[h] == 0.0f ? 0.0f : 1.0f / total[h];
      const int i = row + 8 * h + lane / 4;
      if (lane % 4 == 0 && i < length) {
        lse[i] = total[h] == 0.0f ? infinity() : base[h] * LN_2 + logf(total[h]);
      }
    }
  }
};

// 16 rows of sums that a warp holds, from row `own` of a tile that it alone still uses. Row h of a
// lane is multiplied by factors[h].
template <int D, int ROWS, typename T>
__device__ __forceinline__ void store_rows(const float (&sums)[D / 2], const float (&factors)[2],
                                           T* tile, int own, T* to, int64_t stride, int row,
                                           int length, int width) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      Pack<T, 2> pair;
      pair[0] = narrow<T>(sums[4 * n + 2 * h] * factors[h]);
      pair[1] = narrow<T>(sums[4 * n + 2 * h + 1] * factors[h]);
      store<2>(place_of<ROWS>(tile, own + 8 * h + lane / 4, n) + lane % 4 * 2, pair);
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 16 * (D / 8); i += 32) {
    const int r = i / (D / 8), pack = i % (D / 8);
    if (row + r < length && pack * 8 < width) {
      store<8>(to + (row + r) * stride + pack * 8, load<8>(place_of<ROWS>(tile, own + r, pack)));
    }
  }
}

// What passes by a block: STAGES buffers of BYTES, which one thread fills and all warps release.
template <int STAGES, int WARPS, int BYTES>
struct Ring {
  Barrier* full;
  Barrier* empty;
  __device__ __forceinline__ explicit Ring(Barrier* barriers)
      : full(barriers), empty(barriers + STAGES) {}
  // By one thread, before a barrier of the block.
  __device__ __forceinline__ void make() const {
#pragma unroll
    for (int i = 0; i < STAGES; ++i) {
      make_barrier(full + i, 1);
      make_barrier(empty + i, WARPS);
    }
  }
  // The barrier that the loads of a step are to be counted by, when its buffer is free.
  __device__ __forceinline__ Barrier* claimed(int step) const {
    if (step >= STAGES) wait(empty + step % STAGES, (step / STAGES - 1) & 1);
    arrive_expecting(full + step % STAGES, BYTES);
    return full + step % STAGES;
  }
  __device__ __forceinline__ void await(int step) const {
    wait(full + step % STAGES, step / STAGES & 1);
  }
  __device__ __forceinline__ void release(int step) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(empty + step % STAGES);
  }
};
