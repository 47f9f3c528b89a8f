// Attention without its matrix of weights: an online softmax.
//
// Op:          attention, attention_dropout, attention_noise
// Math:        s = scale q k^T + mask, lse = log(sum(exp(s))), p = exp(s - lse), out = (p n) v;
//              n: factors of dropout, by counter (see Dropped)
// Layout:      q, k, v, out: rows of unit stride and whole packs of 16 bytes, strides of batch,
//              head and row whole packs; masks: any strides; lse: contiguous. out lies as q does: a
//              view of (batch, rows, heads, columns), or contiguous
// Launch:      grid heads ceil(L / 64 M), block 128, shared (64 M + 4 N) (D sizeof(T) + 16)
// Cost:        4 L S E FLOPs a head, half of it if causal, PRODUCTS times; q, k, v, out once where
//              they stay in L2: bound by the tensor cores
// Types:       half, bfloat16, float -> float
// Determinism: bit for bit
// Limits:      below sm_80; head sizes above 128; float64; float32 numbers beyond 2^114; at most
//              99 KB of shared memory are used, so that sm_86 and sm_89 run everything
// Variants:    PRODUCTS: 1 for two-byte types and where TF32 is allowed, else 3. MASK: 0 none, 1
//              keeps, 2 is added. D: the head size, rounded up. M: 2 where there are more than 64
//              rows, no mask, no dropout, and registers enough. With a mask or dropout fewer
//              columns pass at a time, for registers
// Instances:   attention_forward_noise<float>: 32 registers, 0 bytes shared
//   attention_forward<__nv_bfloat16,32,2,32,false,0,false,1>: 168 registers, 0 bytes shared
//   attention_forward<__nv_bfloat16,64,2,32,true,0,false,1>: 168 registers, 0 bytes shared
//   attention_forward<__half,64,1,64,false,0,false,1>: 168 registers, 0 bytes shared
//   attention_forward<__nv_bfloat16,128,1,32,true,0,false,1>: 255 registers, 0 bytes shared
//   attention_forward<__half,96,1,16,false,2,false,1>: 200 registers, 0 bytes shared
//   attention_forward<float,32,2,32,false,0,false,3>: 255 registers, 0 bytes shared
//   attention_forward<float,64,2,32,true,0,false,3>: 255 registers, 0 bytes shared
//   attention_forward<float,64,2,32,true,0,false,1>: 255 registers, 0 bytes shared
//   attention_forward<float,64,1,32,false,0,false,3>: 168 registers, 0 bytes shared
//   attention_forward<float,64,1,16,false,2,false,3>: 255 registers, 0 bytes shared
//   attention_forward<float,128,1,16,false,0,true,3>: 255 registers, 0 bytes shared
// Source:      Dao, FlashAttention-2 (2023); Milakov and Gimelshein, Online softmax (2018); Ootomo
//              and Yokota, Recovering single precision accuracy from tensor cores (2022)
// Measured:    NVIDIA H200, 16x12x1024x64 causal, 2026-11-23: float32 514 us (728 before; PyTorch
//              884), of TF32 287 us; the tensor cores work in 0.51 of the cycles, 0.39 issue.
//              float32 by 64 rows a block: 535 us; N 16: 565; 64 rows and 64 columns: 535; keys
//              and values split once for all warps in shared memory: 541

#include "common.cuh"
#include "mma.cuh"
#include "philox.cuh"
#include "attention_tile.cuh"
#include "attention_problem.cuh"

// ---------------------------------------------------------------------------- device helpers

// Blocks a multiprocessor is to hold, as many as leave enough registers; 0: the compiler's choice.
template <typename T, int D, int M, int MASK, bool DROPOUT>
constexpr int least_blocks = MASK != 0 || DROPOUT || D > 64 || (sizeof(T) == 4 && M > 1) ? 2
                             : D == 32 && M > 1                                          ? 3
                                                                                         : 0;

// ---------------------------------------------------------------------------- kernels

// A block serves 64 M rows of one head, a warp 16 M of them; keys and values pass by, N at a time.
template <typename T, int D, int M, int N, bool CAUSAL, int MASK, bool DROPOUT, int PRODUCTS>
__global__ void __launch_bounds__(128, least_blocks<T, D, M, MASK, DROPOUT>)
    attention_forward(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                      const bool* __restrict__ keep, const T* __restrict__ bias,
                      const uint64_t* __restrict__ ticket, const Problem problem, float scale,
                      float factor, T* __restrict__ out, float* __restrict__ lse) {
  static_assert(D % 32 == 0 && D <= 128 && N % 16 == 0, "whole products");
  typedef Tile<T, D> L;
  constexpr int ROWS = 64 * M, THREADS = 128;
  extern __shared__ __align__(16) unsigned char memory[];
  T* queries = reinterpret_cast<T*>(memory);
  T* passing = queries + ROWS * L::PITCH;  // two buffers of keys, then values

  const int64_t length = problem.length, size = problem.size;
  const int64_t tiles = (length + ROWS - 1) / ROWS;
  const int64_t place = blockIdx.x % tiles, at = blockIdx.x / tiles;
  const int64_t row0 = (CAUSAL ? tiles - 1 - place : place) * ROWS;  // the longest first
  const int64_t batch = at / problem.heads, head = at % problem.heads;
  const int64_t shared = head / problem.groups;
  q += batch * problem.q[0] + head * problem.q[1];
  k += batch * problem.k[0] + shared * problem.k[1];
  v += batch * problem.v[0] + shared * problem.v[1];
  out += batch * problem.g[0] + head * problem.g[1];
  const int64_t mask_at = batch * problem.mask[0] + head * problem.mask[1];
  const int row_stride = static_cast<int>(problem.mask[2]);
  const int column_stride = static_cast<int>(problem.mask[3]);

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T* own = queries + warp * 16 * M * L::PITCH;
  const int64_t row = row0 + warp * 16 * M;
  const int rows_left = at_most<16 * M>(length - row);
  const float scale_2 = scale * LOG2_E;

  float sums[M][D / 8][4] = {}, top[M][2], total[M][2] = {};
#pragma unroll
  for (int m = 0; m < M; ++m) top[m][0] = top[m][1] = -infinity();

  const int64_t end = CAUSAL && row0 + ROWS < size ? row0 + ROWS : size;
  load_tile<T, D, ROWS, THREADS>(queries, q, problem.q[2], row0, length, problem.width);
  const auto load_columns = [&](int64_t column) {
    T* to = passing + column / N % 2 * 2 * N * L::PITCH;
    load_tile<T, D, N, THREADS>(to, k, problem.k[2], column, size, problem.width);
    load_tile<T, D, N, THREADS>(to + N * L::PITCH, v, problem.v[2], column, size,
                                problem.value_width);
    cp_async_commit();
  };
  load_columns(0);
#pragma unroll 1
  for (int64_t column = 0; column < end; column += N) {
    cp_async_wait<0>();
    __syncthreads();  // the buffer of the columns before these is free as well
    if (column + N < end) load_columns(column + N);

    const int live = at_most<N>(size - column), ahead = at_most<N + 16 * M>(row - column);
    if (rows_left <= 0 || (CAUSAL && ahead <= -16 * M)) continue;  // the warp has no share
    const T* keys = passing + column / N % 2 * 2 * N * L::PITCH;
    float scores[M][N / 8][4], shrink[M][2];
    multiply_rows<T, D, PRODUCTS>(scores, own, keys);
    const int64_t corner = mask_at + (row + lane / 4) * row_stride +
                           (column + lane % 4 * 2) * column_stride;
    const bool* keep_corner = MASK == 1 ? keep + corner : nullptr;
    const T* bias_corner = MASK >= 2 ? bias + corner : nullptr;
    each<M, N / 8>([&](int m, int n, int e) {
      const int i = 16 * m + lane / 4 + e / 2 * 8, j = 8 * n + lane % 4 * 2 + e % 2;
      float& score = scores[m][n][e];
      score *= scale_2;
      if (MASK != 0 && i < rows_left && j < live) {
        score = masked<T, MASK>(
            score, keep_corner, bias_corner,
            (16 * m + e / 2 * 8) * row_stride + (8 * n + e % 2) * column_stride);
      }
    });
    if (live < N || (CAUSAL && ahead < N)) {
      each<M, N / 8>([&](int m, int n, int e) {
        const int i = 16 * m + lane / 4 + e / 2 * 8, j = 8 * n + lane % 4 * 2 + e % 2;
        if (j >= live || (CAUSAL && j - i > ahead)) scores[m][n][e] = -infinity();
      });
    }
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float peak = top[m][h];
#pragma unroll
        for (int n = 0; n < N / 8; ++n) {
          peak = fmaxf(peak, fmaxf(scores[m][n][2 * h], scores[m][n][2 * h + 1]));
        }
        peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, 1));
        peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, 2));
        const float base = peak == -infinity() ? 0.0f : peak;
        shrink[m][h] = power_of_two(top[m][h] - base);
        top[m][h] = peak;
        total[m][h] *= shrink[m][h];
#pragma unroll
        for (int n = 0; n < N / 8; ++n) {
#pragma unroll
          for (int e = 2 * h; e < 2 * h + 2; ++e) {
            scores[m][n][e] = power_of_two(scores[m][n][e] - base);
            total[m][h] += scores[m][n][e];
          }
        }
      }
    }
    if constexpr (DROPOUT) {
      const Dropped dropped(ticket, problem, factor);
#pragma unroll
      for (int m = 0; m < M; ++m) {
#pragma unroll
        for (int n = 0; n < N / 8; ++n) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const int64_t j = column + 8 * n + lane % 4 * 2;
            const int64_t i = at * length + row + 16 * m + 8 * h + lane / 4;
            const Words words = dropped.words(i, j);
            scores[m][n][2 * h] *= dropped.of(words, j & 2);
            scores[m][n][2 * h + 1] *= dropped.of(words, (j & 2) + 1);
          }
        }
      }
    }
    multiply_columns<T, D, PRODUCTS>(sums, shrink, scores, keys + N * L::PITCH);
  }

  float factors[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      total[m][h] += __shfl_xor_sync(0xffffffffu, total[m][h], 1);
      total[m][h] += __shfl_xor_sync(0xffffffffu, total[m][h], 2);
      factors[m][h] = total[m][h] == 0.0f ? 0.0f : 1.0f / total[m][h];
      const int64_t i = row + 16 * m + 8 * h + lane / 4;
      if (lane % 4 == 0 && i < length) {
        lse[at * length + i] =
            total[m][h] == 0.0f ? infinity() : top[m][h] * LN_2 + logf(total[m][h]);
      }
    }
  }
  store_rows<T, D>(sums, factors, own, out, problem.g[2], row, length, problem.value_width);
}

// The factors of dropout, (rows, size), for what differentiates them again.
template <typename T>
__global__ void __launch_bounds__(256)
    attention_forward_noise(const uint64_t* __restrict__ ticket, const Problem problem,
                            int64_t rows, float factor, T* __restrict__ noise) {
  const Dropped dropped(ticket, problem, factor);
  GRID_STRIDE(i, rows * dropped.counters) {
    const int64_t row = i / dropped.counters, column = i % dropped.counters * 4;
    const Words words = dropped.words(row, column);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      if (column + c < problem.size) {
        noise[row * problem.size + column + c] = narrow<T>(dropped.of(words, c));
      }
    }
  }
}
