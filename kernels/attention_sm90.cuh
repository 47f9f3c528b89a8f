// Tiles of attention on warpgroup products: how they lie in shared memory, what multiplies them.
//
// A tile has ROWS rows of D two-byte values, in panels of 64 columns. In a panel a row takes 128
// bytes, and the pack of 16 bytes at place p of row r lies at place p ^ (r % 8): the 128-byte
// swizzle of the tensor cores, which read a tile by rows or by columns without conflicts of banks.
// Tiles begin at multiples of 1024 bytes. Scores and sums lie in registers as mma.cuh's `c` does: of
// the 64 rows of a warpgroup warp w has 16 w to 16 w + 15, its lanes rows lane / 4 and lane / 4 + 8,
// columns lane % 4 * 2 and the next one of every 8.

constexpr int PANEL = 64;  // columns

// Where a pack lies within a tile, in elements.
template <int ROWS>
__device__ __forceinline__ int place_of(int row, int pack) {
  return (pack / 8 * ROWS + row) * PANEL + ((pack % 8) ^ (row % 8)) * 8;
}

// Rows [row, row + ROWS) of a (length, width) matrix into a tile, with zeros beyond it.
template <typename T, int D, int ROWS, int THREADS>
__device__ __forceinline__ void load_panels(T* tile, const T* from, int64_t stride, int row,
                                            int length, int width) {
  constexpr int packs = D / 8;
  static_assert(THREADS % packs == 0, "a round copies whole rows");
  const int own = threadIdx.x / packs, pack = threadIdx.x % packs;
  const bool within = pack * 8 < width;
  const T* corner = from + (row + own) * stride + pack * 8;
#pragma unroll
  for (int r = 0; r < ROWS; r += THREADS / packs) {
    if (ROWS % (THREADS / packs) != 0 && own + r >= ROWS) break;
    const bool wanted = within && row + own + r < length;
    cp_async<16>(tile + place_of<ROWS>(own + r, pack), wanted ? corner + r * stride : from, wanted);
  }
}

// scores = left right^T over D columns: the warpgroup's 64 rows of a tile of ROWS, all N rows of
// `right`, by K-major descriptors. Begins; the caller commits and waits.
template <typename T, int D, int ROWS, int N>
__device__ __forceinline__ void begin_rows(float (&scores)[N / 2], uint64_t left,
                                           uint64_t right) {
#pragma unroll
  for (int k = 0; k < D; k += 16) {
    const int panel = k / PANEL * 128, within = k % PANEL * 2;
    wgmma<T>(scores, advance(left, panel * ROWS + within), advance(right, panel * N + within),
             k != 0);
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

// sums += weights right: the weights' N columns are the rows of `right`, an
// MN-major descriptor. Begins.
template <typename T, int D, int N>
__device__ __forceinline__ void begin_columns(float (&sums)[D / 2],
                                              const uint32_t (&weights)[N / 16][4],
                                              uint64_t right) {
#pragma unroll
  for (int k = 0; k < N / 16; ++k) {
    wgmma<T, true>(sums, weights[k], advance(right, k * 2048), true);
  }
}

// 16 rows of sums that a warp holds, by way of rows of a tile that it alone still uses. Row h of a
// lane is multiplied by factors[h].
template <typename T, int D, int ROWS>
__device__ __forceinline__ void store_panels(const float (&sums)[D / 2],
                                             const float (&factors)[2], T* tile, int own, T* to,
                                             int64_t stride, int row, int length, int width) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      Pack<T, 2> pair;
      pair[0] = narrow<T>(sums[4 * n + 2 * h] * factors[h]);
      pair[1] = narrow<T>(sums[4 * n + 2 * h + 1] * factors[h]);
      store<2>(tile + place_of<ROWS>(own + 8 * h + lane / 4, n) + lane % 4 * 2, pair);
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 16 * (D / 8); i += 32) {
    const int r = i / (D / 8), pack = i % (D / 8);
    if (row + r < length && pack * 8 < width) {
      store<8>(to + (row + r) * stride + pack * 8, load<8>(tile + place_of<ROWS>(own + r, pack)));
    }
  }
}
