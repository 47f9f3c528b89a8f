// What attention multiplies: tiles in shared memory, products of a warp, of half or single floats.
//
// Scores lie in registers as mma.cuh's `c` does: of 16 rows and 8 columns a lane holds rows
// lane / 4 and lane / 4 + 8, columns lane % 4 * 2 and the next one. Single precision runs on the
// tensor cores as well: rounded to tf32 (PRODUCTS == 1), or as a sum of two tf32 numbers, of whose
// products the smallest is left out (PRODUCTS == 3), which is as exact as single precision.

constexpr float LOG2_E = 1.44269504f, LN_2 = 0.69314718f;

__device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }

// f(m, n, e) for every score that a lane holds.
template <int M, int N, typename F>
__device__ __forceinline__ void each(F f) {
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) f(m, n, e);
    }
  }
}

// How tiles of T with D columns lie in shared memory: a pack of 16 bytes after each row keeps eight
// rows at one column in different banks.
template <typename T, int D>
struct Tile {
  static constexpr int PACK = 16 / sizeof(T);
  static constexpr int DEPTH = 2 * PACK;  // columns that one product sums over
  static constexpr int PITCH = D + PACK;
};

__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

// One side of a product: N registers, and what rounding to tf32 left of them if PRODUCTS is 3.
//
// Rounded to 11 bits by Veltkamp's way, whose three instructions run at the full rate (to_tf32 is
// four at half of it); numbers beyond 2^114 become NaN. What is left has 12 bits, of which the
// tensor core reads 11: rounding that as well would gain nothing.
template <typename T, int N, int PRODUCTS>
struct Operand {
  uint32_t high[N], low[N];
  __device__ __forceinline__ void set(int i, uint32_t bits) {
    if constexpr (sizeof(T) == 2) {
      high[i] = bits;
    } else {
      const float x = __uint_as_float(bits);
      const float far = __fmul_rn(x, 8193.0f);
      high[i] = __float_as_uint(__fmaf_rn(x, -8192.0f, far));
      if constexpr (PRODUCTS == 3) low[i] = __float_as_uint(__fmaf_rn(x, 8193.0f, -far));
    }
  }
};
template <typename T, int PRODUCTS>
using Left = Operand<T, 4, PRODUCTS>;
template <typename T, int PRODUCTS>
using Right = Operand<T, 2, PRODUCTS>;

// Tiles of eight columns that are multiplied together, so that products of one sum do not follow
// each other.
template <typename T>
constexpr int together = sizeof(T) == 2 ? 2 : 4;

// Sums n, n + 1, ... of c += a b.
template <typename T, int PRODUCTS, int M, int N, int COUNT>
__device__ __forceinline__ void multiply(float (&c)[M][N][4], int n,
                                         const Left<T, PRODUCTS> (&a)[M],
                                         const Right<T, PRODUCTS> (&b)[COUNT]) {
#pragma unroll
  for (int product = PRODUCTS - 1; product >= 0; --product) {  // the small ones first
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
#pragma unroll
      for (int m = 0; m < M; ++m) {
        if constexpr (sizeof(T) == 2) {
          mma_16<T>(c[m][n + i], a[m].high, b[i].high);
        } else {
          mma_tf32(c[m][n + i], product == 2 ? a[m].low : a[m].high,
                   product == 1 ? b[i].low : b[i].high);
        }
      }
    }
  }
}

// scores = left right^T over D columns: 16 M rows of `left`, 8 N rows of `right`.
template <typename T, int D, int PRODUCTS, int M, int N>
__device__ __forceinline__ void multiply_rows(float (&scores)[M][N][4], const T* left,
                                              const T* right) {
  typedef Tile<T, D> L;
  constexpr int COUNT = N % together<T> == 0 ? together<T> : 2;
  const int lane = threadIdx.x % 32;
  left += lane % 16 * L::PITCH + lane / 16 * L::PACK;
  right += (lane / 16 * 8 + lane % 8) * L::PITCH + lane / 8 % 2 * L::PACK;
  each<M, N>([&](int m, int n, int e) { scores[m][n][e] = 0.0f; });
#pragma unroll
  for (int column = 0; column < D; column += L::DEPTH) {
    uint32_t bits[4];
    Left<T, PRODUCTS> a[M];
#pragma unroll
    for (int m = 0; m < M; ++m) {
      ldmatrix<4>(bits, left + 16 * m * L::PITCH + column);
#pragma unroll
      for (int i = 0; i < 4; ++i) a[m].set(i, bits[i]);
    }
#pragma unroll
    for (int n = 0; n < N; n += COUNT) {
      Right<T, PRODUCTS> b[COUNT];
#pragma unroll
      for (int c = 0; c < COUNT; c += 2) {
        ldmatrix<4>(bits, right + 8 * (n + c) * L::PITCH + column);
#pragma unroll
        for (int i = 0; i < 4; ++i) b[c + i / 2].set(i % 2, bits[i]);
      }
      multiply<T, PRODUCTS>(scores, n, a, b);
    }
  }
}

// The left side of products whose sums run over 8 N scores: weights, or their gradients.
template <typename T, int PRODUCTS, int M, int N>
__device__ __forceinline__ void take_left(Left<T, PRODUCTS> (&a)[M],
                                          const float (&weights)[M][N][4], int n) {
#pragma unroll
  for (int m = 0; m < M; ++m) {
    const float(&w)[4] = weights[m][n];
    if constexpr (sizeof(T) == 2) {
      const float(&x)[4] = weights[m][n + 1];
      a[m].set(0, pack_16<T>(w[0], w[1]));
      a[m].set(1, pack_16<T>(w[2], w[3]));
      a[m].set(2, pack_16<T>(x[0], x[1]));
      a[m].set(3, pack_16<T>(x[2], x[3]));
    } else {  // the sum over eight runs in the order 0, 2, 4, 6, 1, 3, 5, 7 on both sides
      a[m].set(0, __float_as_uint(w[0]));
      a[m].set(1, __float_as_uint(w[2]));
      a[m].set(2, __float_as_uint(w[1]));
      a[m].set(3, __float_as_uint(w[3]));
    }
  }
}

// sums = factors sums + weights right: the weights are scores of 8 N columns, which are rows of
// `right`; row m + 8 h of a lane is multiplied by factors[m][h]. The tensor core cuts its sums off,
// always towards zero: so the sums of single precision are added up here, tile by tile.
template <typename T, int D, int PRODUCTS, int M, int N>
__device__ __forceinline__ void multiply_columns(float (&sums)[M][D / 8][4],
                                                 const float (&factors)[M][2],
                                                 const float (&weights)[M][N][4], const T* right) {
  typedef Tile<T, D> L;
  constexpr int COUNT = together<T>, STEPS = 8 * N / L::DEPTH;
  constexpr bool EXACT = sizeof(T) == 4 && PRODUCTS == 3;
  const int lane = threadIdx.x % 32;
  if constexpr (sizeof(T) == 2) {
    right += lane % 16 * L::PITCH + lane / 16 * 8;
  } else {
    right += lane % 4 * 2 * L::PITCH + lane / 4;
  }
  Left<T, PRODUCTS> a[STEPS][M];
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    take_left<T, PRODUCTS>(a[step], weights, step * L::DEPTH / 8);
  }
#pragma unroll
  for (int n = 0; n < D / 8; n += COUNT) {
    float part[M][COUNT][4];
    each<M, COUNT>([&](int m, int c, int e) {
      part[m][c][e] = EXACT ? 0.0f : sums[m][n + c][e] * factors[m][e / 2];
    });
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      Right<T, PRODUCTS> b[COUNT];
#pragma unroll
      for (int c = 0; c < COUNT; c += 2) {
        const T* from = right + step * L::DEPTH * L::PITCH + 8 * (n + c);
        uint32_t bits[4];
        if constexpr (sizeof(T) == 2) {
          ldmatrix_transposed<4>(bits, from);
        } else {
          bits[0] = __float_as_uint(from[0]);
          bits[1] = __float_as_uint(from[L::PITCH]);
          bits[2] = __float_as_uint(from[8]);
          bits[3] = __float_as_uint(from[L::PITCH + 8]);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) b[c + i / 2].set(i % 2, bits[i]);
      }
      multiply<T, PRODUCTS>(part, 0, a[step], b);
    }
    each<M, COUNT>([&](int m, int c, int e) {
      float& sum = sums[m][n + c][e];
      sum = EXACT ? fmaf(sum, factors[m][e / 2], part[m][c][e]) : part[m][c][e];
    });
  }
}

// Rows [row, row + ROWS) of a (length, width) matrix into shared memory, with zeros beyond it.
template <typename T, int D, int ROWS, int THREADS>
__device__ __forceinline__ void load_tile(T* tile, const T* from, int64_t stride, int64_t row,
                                          int64_t length, int64_t width) {
  typedef Tile<T, D> L;
  constexpr int packs = D / L::PACK;
#pragma unroll
  for (int i = 0; i < (ROWS * packs + THREADS - 1) / THREADS; ++i) {
    const int place = i * THREADS + threadIdx.x;
    if (ROWS * packs % THREADS != 0 && place >= ROWS * packs) break;
    const int r = place / packs, column = place % packs * L::PACK;
    const bool wanted = row + r < length && column < width;
    cp_async<16>(tile + r * L::PITCH + column,
                 wanted ? from + (row + r) * stride + column : from, wanted);
  }
}

// 16 M rows of sums that a warp holds, by way of rows of shared memory that it alone still uses.
// Row m + 8 h of a lane is multiplied by factors[m][h].
template <typename T, int D, int M>
__device__ __forceinline__ void store_rows(const float (&sums)[M][D / 8][4],
                                           const float (&factors)[M][2], T* tile, T* to,
                                           int64_t stride, int64_t row, int64_t length,
                                           int64_t width) {
  typedef Tile<T, D> L;
  const int lane = threadIdx.x % 32;
  __syncwarp();
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Pack<T, 2> pair;
        pair[0] = narrow<T>(sums[m][n][2 * h] * factors[m][h]);
        pair[1] = narrow<T>(sums[m][n][2 * h + 1] * factors[m][h]);
        store<2>(tile + (16 * m + 8 * h + lane / 4) * L::PITCH + 8 * n + lane % 4 * 2, pair);
      }
    }
  }
  __syncwarp();
  constexpr int packs = D / L::PACK;
#pragma unroll
  for (int i = lane; i < 16 * M * packs; i += 32) {
    const int r = i / packs, column = i % packs * L::PACK;
    if (row + r < length && column < width) {
      store<L::PACK>(to + (row + r) * stride + column,
                     load<L::PACK>(tile + r * L::PITCH + column));
    }
  }
}
