// Products of tiles in shared memory, on tensor cores or with multiply-adds, and the pipeline that
// feeds them. For files that include common.cuh and mma.cuh.

constexpr int STAGES = 4;             // tiles under way
constexpr int ROW = 64;               // bytes of a tile's row along the summed axis: 4 packs
constexpr int ROW_PITCH = ROW + 16;   // 8 neighbouring rows start in 8 different packs of banks

// Where the summed axis is across: rows of `count` values, so pitched that reads do not collide.
template <typename T>
__device__ constexpr int column_pitch(int count) {
  return count * static_cast<int>(sizeof(T)) + (sizeof(T) == 4 ? 32 : 16);
}
__device__ constexpr int larger(int a, int b) { return a > b ? a : b; }

// Threads of a block: WM x WN warps of a tensor-core product, else WM x WN threads; and how many
// blocks should share a multiprocessor.
template <int WM, int WN, bool TENSOR>
constexpr int THREADS_OF = TENSOR ? 32 * WM * WN : WM * WN;
template <int WM, int WN, bool TENSOR>
constexpr int RESIDENT = (TENSOR ? 512 : 384) / THREADS_OF<WM, WN, TENSOR>;

// A block's product of two tiles in shared memory, added to what its threads hold.
// ROWS: tiles a[m][k], b[n][k] with ROW_PITCH, else a[k][m], b[k][n] with column_pitch; k runs over
// 64 / sizeof(T) values. each(f) calls f(m, n, value) for what the thread holds.
template <typename T, int BM, int BN, int WM, int WN, bool TENSOR, bool ROWS>
struct Product;

// On tensor cores: WM x WN warps.
template <typename T, int BM, int BN, int WM, int WN, bool ROWS>
struct Product<T, BM, BN, WM, WN, true, ROWS> {
  static constexpr int FM = BM / WM / 16, FN = BN / WN / 8;  // fragments of a warp
  static_assert(FM * WM * 16 == BM && FN * WN * 8 == BN && FN % 2 == 0, "whole pairs");
  static_assert(sizeof(T) <= 4, "no tensor cores for double here");
  float c[FM][FN][4] = {};
  const int lane = threadIdx.x % 32;
  const int m0 = threadIdx.x / 32 / WN * (BM / WM), n0 = threadIdx.x / 32 % WN * (BN / WN);

  static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4],
                                                  const uint32_t (&b)[2]) {
    if constexpr (sizeof(T) == 4) {
      mma_tf32(c, a, b);
    } else {
      mma_16<T>(c, a, b);
    }
  }
  template <int N>
  static __device__ __forceinline__ void rounded(uint32_t (&r)[N]) {
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int i = 0; i < N; ++i) r[i] = to_tf32(__uint_as_float(r[i]));
    }
  }
  __device__ __forceinline__ void add(const char* a, const char* b) {
#pragma unroll
    for (int step = 0; step < 2; ++step) {  // of 32 bytes along k: one product
      uint32_t fa[FM][4], fb[FN][2];
#pragma unroll
      for (int i = 0; i < FM; ++i) load_a(fa[i], a, step, m0 + 16 * i);
#pragma unroll
      for (int j = 0; j < FN; j += 2) load_b(fb[j], fb[j + 1], b, step, n0 + 8 * j);
#pragma unroll
      for (int i = 0; i < FM; ++i) {
#pragma unroll
        for (int j = 0; j < FN; ++j) multiply(c[i][j], fa[i], fb[j]);
      }
    }
  }
  __device__ __forceinline__ void load_a(uint32_t (&r)[4], const char* a, int step, int m) {
    if constexpr (ROWS) {
      ldmatrix(r, a + (m + lane % 16) * ROW_PITCH + 32 * step + lane / 16 * 16);
    } else if constexpr (sizeof(T) == 2) {
      const int k = 16 * step + lane / 16 * 8 + lane % 8;
      ldmatrix_transposed(r, a + k * column_pitch<T>(BM) + 2 * (m + lane / 8 % 2 * 8));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = 8 * step + lane % 4 + i / 2 * 4;
        r[i] = *reinterpret_cast<const uint32_t*>(a + k * column_pitch<T>(BM) +
                                                  4 * (m + lane / 4 + i % 2 * 8));
      }
    }
    rounded(r);
  }
  __device__ __forceinline__ void load_b(uint32_t (&first)[2], uint32_t (&second)[2],
                                         const char* b, int step, int n) {
    uint32_t r[4];  // two fragments, two registers each
    if constexpr (ROWS) {
      const int row = n + lane / 16 * 8 + lane % 8;
      ldmatrix(r, b + row * ROW_PITCH + 32 * step + lane / 8 % 2 * 16);
    } else if constexpr (sizeof(T) == 2) {
      const int k = 16 * step + lane / 8 % 2 * 8 + lane % 8;
      ldmatrix_transposed(r, b + k * column_pitch<T>(BN) + 2 * (n + lane / 16 * 8));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = 8 * step + lane % 4 + i % 2 * 4;
        r[i] = *reinterpret_cast<const uint32_t*>(b + k * column_pitch<T>(BN) +
                                                  4 * (n + lane / 4 + i / 2 * 8));
      }
    }
    rounded(r);
    first[0] = r[0], first[1] = r[1], second[0] = r[2], second[1] = r[3];
  }
  template <typename F>
  __device__ __forceinline__ void each(F f) const {
#pragma unroll
    for (int i = 0; i < FM; ++i) {
#pragma unroll
      for (int j = 0; j < FN; ++j) {
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          f(m0 + 16 * i + lane / 4 + v / 2 * 8, n0 + 8 * j + lane % 4 * 2 + v % 2, c[i][j][v]);
        }
      }
    }
  }
};

// With multiply-adds: WM x WN threads.
template <typename T, int BM, int BN, int WM, int WN, bool ROWS>
struct Product<T, BM, BN, WM, WN, false, ROWS> {
  static constexpr int VEC = 16 / sizeof(T), TM = BM / WM, TN = BN / WN;
  static_assert(TM % VEC == 0 && TN % VEC == 0 && sizeof(T) >= 4, "whole packs of wide types");
  T c[TM][TN] = {};
  const int tm = threadIdx.x / WN, tn = threadIdx.x % WN;

  __device__ __forceinline__ void add(const char* a, const char* b) {
    if constexpr (ROWS) {  // rows tm + i WM, tn + j WN: neighbours read neighbouring rows
#pragma unroll 1
      for (int pack = 0; pack < ROW; pack += 16) {
        constexpr bool HOLD_A = TM <= TN;  // the smaller side stays in registers
        constexpr int HELD = HOLD_A ? TM : TN, STREAMED = HOLD_A ? TN : TM;
        Pack<T, VEC> held[HELD];
#pragma unroll
        for (int i = 0; i < HELD; ++i) {
          held[i] = HOLD_A ? at(a + (tm + i * WM) * ROW_PITCH + pack)
                           : at(b + (tn + i * WN) * ROW_PITCH + pack);
        }
#pragma unroll
        for (int j = 0; j < STREAMED; ++j) {
          const Pack<T, VEC> other = HOLD_A ? at(b + (tn + j * WN) * ROW_PITCH + pack)
                                            : at(a + (tm + j * WM) * ROW_PITCH + pack);
#pragma unroll
          for (int v = 0; v < VEC; ++v) {
#pragma unroll
            for (int i = 0; i < HELD; ++i) {
              c[HOLD_A ? i : j][HOLD_A ? j : i] += held[i][v] * other[v];
            }
          }
        }
      }
    } else {  // packs tm + i WM, tn + j WN of the rows
#pragma unroll 4
      for (int k = 0; k < ROW / static_cast<int>(sizeof(T)); ++k) {
        Pack<T, VEC> fa[TM / VEC], fb[TN / VEC];
#pragma unroll
        for (int i = 0; i < TM / VEC; ++i) {
          fa[i] = at(a + k * column_pitch<T>(BM) + (tm + i * WM) * 16);
        }
#pragma unroll
        for (int j = 0; j < TN / VEC; ++j) {
          fb[j] = at(b + k * column_pitch<T>(BN) + (tn + j * WN) * 16);
        }
#pragma unroll
        for (int i = 0; i < TM; ++i) {
#pragma unroll
          for (int j = 0; j < TN; ++j) c[i][j] += fa[i / VEC][i % VEC] * fb[j / VEC][j % VEC];
        }
      }
    }
  }
  static __device__ __forceinline__ Pack<T, VEC> at(const char* from) {
    return load<VEC>(reinterpret_cast<const T*>(from));
  }
  template <typename F>
  __device__ __forceinline__ void each(F f) const {
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
      for (int j = 0; j < TN; ++j) {
        if constexpr (ROWS) {
          f(tm + i * WM, tn + j * WN, c[i][j]);
        } else {
          f((tm + i / VEC * WM) * VEC + i % VEC, (tn + j / VEC * WN) * VEC + j % VEC, c[i][j]);
        }
      }
    }
  }
};

// Sums `steps` tiles: fetch(place) starts copying the next one there, and moves on.
template <int STAGE, typename P, typename F>
__device__ __forceinline__ void run_pipeline(char* tiles, int second, int steps, P& product,
                                             F fetch) {
#pragma unroll
  for (int stage = 0; stage < STAGES - 1; ++stage) {
    if (stage < steps) fetch(tiles + stage * STAGE);
    cp_async_commit();
  }
  int read = 0, write = STAGES - 1;
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();  // this tile is there for all, and all are done with the one before
    if (step + STAGES - 1 < steps) fetch(tiles + write * STAGE);
    cp_async_commit();
    product.add(tiles + read * STAGE, tiles + read * STAGE + second);
    read = read + 1 == STAGES ? 0 : read + 1;
    write = write + 1 == STAGES ? 0 : write + 1;
  }
  cp_async_wait<0>();
  __syncthreads();  // the tiles' memory is free
}
