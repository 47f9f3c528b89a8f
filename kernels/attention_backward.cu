// The gradients of attention: its weights are computed again.
//
// Op:          attention_backward, attention_dropout_backward
// Math:        p = exp(s - lse) as in attention.cu; delta = sum(g out);
//              ds = p (n (g v^T) - delta), gq = scale ds k, gk = scale ds^T q, gv = (p n)^T g,
//              gmask = ds; n: factors of dropout
// Layout:      as in attention.cu; delta: contiguous
// Launch:      grid heads ceil(rows / 64 M), block 128, shared
//              (128 M + 2 STAGES N) (D sizeof(T) + 16) + 8 STAGES N; delta: LANES threads a row,
//              block 256
// Cost:        14 L S E FLOPs a head, half of it if causal, PRODUCTS times: bound by the tensor
//              cores
// Types:       half, bfloat16, float -> float
// Determinism: bit for bit: no atomics, the gradients of keys and of queries are two launches
// Limits:      as in attention.cu; the gradient of a mask beside dropout
// Variants:    PRODUCTS, MASK, D: as in attention.cu; MASK 3 is added and gets a gradient. M: 2 for
//              the gradient of queries, where a block may have 105 KB of shared memory. With a mask
//              or dropout fewer columns pass at a time; of D 96 and 128 some of these spill up to
//              200 bytes all the same
// Instances:   attention_backward_delta<__nv_bfloat16,8>: 32 registers, 0 bytes shared
//   attention_backward<__nv_bfloat16,64,1,32,2,true,0,false,1,true>: 168 registers, 0 bytes shared
//   attention_backward<__nv_bfloat16,64,1,32,2,true,0,false,1,false>: 168 registers, 0 bytes shared
//   attention_backward<__nv_bfloat16,128,1,32,2,true,0,false,1,true>: 255 registers, 0 bytes shared
//   attention_backward<__half,128,1,16,2,true,0,false,1,false>: 168 registers, 0 bytes shared
//   attention_backward<__half,64,1,32,2,false,1,true,1,true>: 255 registers, 0 bytes shared
//   attention_backward<__half,32,1,32,2,false,2,false,1,false>: 184 registers, 0 bytes shared
//   attention_backward<float,64,1,32,2,true,0,false,3,true>: 255 registers, 0 bytes shared
//   attention_backward<float,64,2,32,2,true,0,false,3,false>: 255 registers, 0 bytes shared
//   attention_backward<float,64,1,32,2,true,0,false,3,false>: 168 registers, 0 bytes shared
//   attention_backward<float,64,1,32,2,true,0,false,1,true>: 255 registers, 0 bytes shared
//   attention_backward<float,64,1,16,2,false,3,false,3,false>: 255 registers, 0 bytes shared
//   attention_backward<float,128,1,16,2,true,0,false,3,true>: 255 registers, 0 bytes shared
//   attention_backward<float,128,1,16,1,false,0,false,3,false>: 255 registers, 0 bytes shared
// Source:      as in attention.cu
// Measured:    NVIDIA H200, 16x12x1024x64 causal, 2026-11-23: float32 1678 us (2767 before; PyTorch
//              2246): keys and values 953, queries 694 (770 by 64 a block), delta 31; of TF32
//              951 us. N 16: 9 and 19 % slower; a single buffer: 4 %. Scores and weights' gradients
//              side by side in one loop gain nothing, queries split once for all warps 2 %

#include "common.cuh"
#include "mma.cuh"
#include "philox.cuh"
#include "attention_tile.cuh"
#include "attention_problem.cuh"

// ---------------------------------------------------------------------------- device helpers

// Blocks a multiprocessor is to hold; 0: the compiler's choice, which where much is loaded would be
// to spill rather than to have fewer than three.
template <typename T, int D, int MASK, bool DROPOUT, bool KEYS>
constexpr int least_blocks = MASK != 0 || DROPOUT || (sizeof(T) == 4 && (D > 64 || KEYS)) ? 2 : 0;

// ---------------------------------------------------------------------------- kernels

// delta[row] = sum(g * out), LANES threads a row.
template <typename T, int LANES>
__global__ void __launch_bounds__(256)
    attention_backward_delta(const T* __restrict__ g, const T* __restrict__ out,
                             const Problem problem, int64_t rows, float* __restrict__ delta) {
  constexpr int PACK = 16 / sizeof(T);
  const int64_t place = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) / LANES;
  const int64_t column = threadIdx.x % LANES * PACK;
  float sum = 0.0f;
  if (place < rows && column < problem.value_width) {
    const int64_t row = place % problem.length, at = place / problem.length;
    const int64_t batch = at / problem.heads, head = at % problem.heads;
    const Pack<T, PACK> x = load<PACK>(g + batch * problem.g[0] + head * problem.g[1] +
                                       row * problem.g[2] + column);
    const Pack<T, PACK> y = load<PACK>(out + batch * problem.first[0] + head * problem.first[1] +
                                       row * problem.first[2] + column);
#pragma unroll
    for (int i = 0; i < PACK; ++i) sum += widen(x[i]) * widen(y[i]);
  }
  sum = warp_reduce<Sum, LANES>(sum);
  if (place < rows && column == 0) delta[place] = sum;
}

// KEYS: a block serves 64 M keys of one head, queries pass by, `first` and `second` are the
// gradients of k and v. Else it serves 64 M queries, keys pass by, and `first` is the gradient of
// q. N rows pass at a time, through STAGES buffers.
template <typename T, int D, int M, int N, int STAGES, bool CAUSAL, int MASK, bool DROPOUT,
          int PRODUCTS, bool KEYS>
__global__ void __launch_bounds__(128, least_blocks<T, D, MASK, DROPOUT, KEYS>)
    attention_backward(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                       const T* __restrict__ g, const float* __restrict__ lse,
                       const float* __restrict__ delta, const bool* __restrict__ keep,
                       const T* __restrict__ bias, const uint64_t* __restrict__ ticket,
                       const Problem problem, float scale, float factor, T* __restrict__ first,
                       T* __restrict__ second, T* __restrict__ mask_gradient) {
  static_assert(D % 32 == 0 && D <= 128 && N % 16 == 0 && 64 % N == 0, "whole products");
  static_assert(STAGES == 1 || STAGES == 2, "one buffer or two");
  static_assert(MASK < 3 || !KEYS, "queries write the mask's gradient");
  typedef Tile<T, D> L;
  constexpr int ROWS = 64 * M, THREADS = 128;
  extern __shared__ __align__(16) unsigned char memory[];
  T* rows_1 = reinterpret_cast<T*>(memory);  // k or q
  T* rows_2 = rows_1 + ROWS * L::PITCH;      // v or g
  T* passing = rows_2 + ROWS * L::PITCH;     // per stage: q or k, then g or v
  float* numbers = reinterpret_cast<float*>(passing + STAGES * 2 * N * L::PITCH);  // lse, delta

  const int64_t length = problem.length, size = problem.size;
  const int64_t rows = KEYS ? size : length, columns = KEYS ? length : size;
  const int64_t heads = KEYS ? problem.heads / problem.groups : problem.heads;
  const int64_t tiles = (rows + ROWS - 1) / ROWS;
  const int64_t place = blockIdx.x % tiles, at = blockIdx.x / tiles;
  const int64_t row0 = (CAUSAL && !KEYS ? tiles - 1 - place : place) * ROWS;
  const int64_t batch = at / heads, head = at % heads;
  const int64_t shared = KEYS ? head : head / problem.groups;
  const int64_t leader = KEYS ? head * problem.groups : head;  // the first query head
  q += batch * problem.q[0];
  k += batch * problem.k[0] + shared * problem.k[1];
  v += batch * problem.v[0] + shared * problem.v[1];
  g += batch * problem.g[0];

  const int64_t begin = CAUSAL && KEYS ? row0 : 0;  // row0 is a multiple of N
  const int64_t end = CAUSAL && !KEYS && row0 + ROWS < size ? row0 + ROWS : columns;
  const int64_t steps = end > begin ? (end - begin + N - 1) / N : 0;
  const int64_t count = KEYS ? steps * problem.groups : steps;

  const auto load_step = [&](int64_t step, int64_t column, int64_t query_head) {
    T* to = passing + step % STAGES * 2 * N * L::PITCH;
    if constexpr (KEYS) {
      load_tile<T, D, N, THREADS>(to, q + query_head * problem.q[1], problem.q[2], column, length,
                                  problem.width);
      load_tile<T, D, N, THREADS>(to + N * L::PITCH, g + query_head * problem.g[1], problem.g[2],
                                  column, length, problem.value_width);
      float* values = numbers + step % STAGES * 2 * N;
      if (threadIdx.x < 2 * N) {
        const int i = threadIdx.x % N;
        const float* from = threadIdx.x < N ? lse : delta;
        const bool wanted = column + i < length;
        from += (batch * problem.heads + query_head) * length;
        cp_async<4>(values + threadIdx.x, wanted ? from + column + i : from, wanted);
      }
    } else {
      load_tile<T, D, N, THREADS>(to, k, problem.k[2], column, size, problem.width);
      load_tile<T, D, N, THREADS>(to + N * L::PITCH, v, problem.v[2], column, size,
                                  problem.value_width);
    }
  };

  if constexpr (KEYS) {
    load_tile<T, D, ROWS, THREADS>(rows_1, k, problem.k[2], row0, size, problem.width);
    load_tile<T, D, ROWS, THREADS>(rows_2, v, problem.v[2], row0, size, problem.value_width);
  } else {
    load_tile<T, D, ROWS, THREADS>(rows_1, q + head * problem.q[1], problem.q[2], row0, length,
                                   problem.width);
    load_tile<T, D, ROWS, THREADS>(rows_2, g + head * problem.g[1], problem.g[2], row0, length,
                                   problem.value_width);
  }
  if (count > 0) load_step(0, begin, leader);
  cp_async_commit();

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t row = row0 + warp * 16 * M;
  T* own_1 = rows_1 + warp * 16 * M * L::PITCH;
  T* own_2 = rows_2 + warp * 16 * M * L::PITCH;
  const int rows_left = at_most<16 * M>(rows - row);
  const int own_stride = static_cast<int>(problem.mask[KEYS ? 3 : 2]);
  const int passing_stride = static_cast<int>(problem.mask[KEYS ? 2 : 3]);
  const float scale_2 = scale * LOG2_E;
  float own_lse[M][2] = {}, own_delta[M][2] = {};
  if constexpr (!KEYS) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int64_t i = row + 16 * m + 8 * h + lane / 4;
        if (i < length) {
          own_lse[m][h] = lse[at * length + i] * LOG2_E;
          own_delta[m][h] = delta[at * length + i];
        }
      }
    }
  }

  float sums_1[M][D / 8][4] = {}, sums_2[M][D / 8][4] = {}, ones[M][2], scales[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) {
    ones[m][0] = ones[m][1] = 1.0f;
    scales[m][0] = scales[m][1] = scale;
  }

  int64_t next_column = begin, next_head = leader;
#pragma unroll 1
  for (int64_t step = 0; step < count; ++step) {
    const int64_t column = next_column, query_head = next_head;
    next_column += N;
    if (KEYS && next_column >= end) {
      next_column = begin;
      ++next_head;
    }
    cp_async_wait<0>();
    __syncthreads();  // of two buffers, that of the step before is free as well
    if constexpr (STAGES == 2) {
      if (step + 1 < count) load_step(step + 1, next_column, next_head);
      cp_async_commit();
    }
    const T* tile_1 = passing + step % STAGES * 2 * N * L::PITCH;
    const T* tile_2 = tile_1 + N * L::PITCH;
    const float* values = numbers + step % STAGES * 2 * N;
    const int64_t mask_at = batch * problem.mask[0] + query_head * problem.mask[1];

    T* mask_corner = mask_gradient;
    if constexpr (MASK == 3) {
      mask_corner += (at * length + row + lane / 4) * size + column + lane % 4 * 2;
    }

    // row and column here are what the block owns and what passes: i and j, or j and i
    const int live = at_most<N>(columns - column), ahead = at_most<N + 16 * M>(row - column);
    if (rows_left > 0 && !(CAUSAL && (KEYS ? ahead >= N : ahead <= -16 * M))) {  // it has a share
      float weights[M][N / 8][4], gradients[M][N / 8][4];
      multiply_rows<T, D, PRODUCTS>(weights, own_1, tile_1);
      multiply_rows<T, D, PRODUCTS>(gradients, own_2, tile_2);
      const int64_t corner = mask_at + (row + lane / 4) * own_stride +
                             (column + lane % 4 * 2) * passing_stride;
      const bool* keep_corner = MASK == 1 ? keep + corner : nullptr;
      const T* bias_corner = MASK >= 2 ? bias + corner : nullptr;
      each<M, N / 8>([&](int m, int n, int e) {
        const int r = 16 * m + lane / 4 + e / 2 * 8, c = 8 * n + lane % 4 * 2 + e % 2;
        float& score = weights[m][n][e];
        score *= scale_2;
        if (MASK != 0 && r < rows_left && c < live) {
          score = masked<T, MASK>(
              score, keep_corner, bias_corner,
              (16 * m + e / 2 * 8) * own_stride + (8 * n + e % 2) * passing_stride);
        }
      });
      // queries beyond the last one are zeros, and so are what they add to the keys' gradients
      if (KEYS ? CAUSAL && ahead > -16 * M : live < N || (CAUSAL && ahead < N)) {
        each<M, N / 8>([&](int m, int n, int e) {
          const int r = 16 * m + lane / 4 + e / 2 * 8, c = 8 * n + lane % 4 * 2 + e % 2;
          if ((!KEYS && c >= live) || (CAUSAL && (KEYS ? c - r < ahead : c - r > ahead))) {
            weights[m][n][e] = -infinity();
          }
        });
      }
      each<M, N / 8>([&](int m, int n, int e) {
        const int r = 16 * m + lane / 4 + e / 2 * 8, c = 8 * n + lane % 4 * 2 + e % 2;
        const float row_lse = KEYS ? values[c] * LOG2_E : own_lse[m][e / 2];
        const float weight = power_of_two(weights[m][n][e] - row_lse);
        float kept = weight, gradient = gradients[m][n][e];
        if constexpr (DROPOUT) {
          const Dropped dropped(ticket, problem, factor);
          const int64_t i = KEYS ? column + c : row + r, j = KEYS ? row + r : column + c;
          const Words words = dropped.words((batch * problem.heads + query_head) * length + i, j);
          const float f = dropped.of(words, static_cast<int>(j & 3));
          kept *= f;
          gradient *= f;
        }
        weights[m][n][e] = kept;
        gradient = weight * (gradient - (KEYS ? values[N + c] : own_delta[m][e / 2]));
        gradients[m][n][e] = gradient;
        if constexpr (MASK == 3) {
          if (r < rows_left && c < live) {
            mask_corner[(16 * m + e / 2 * 8) * size + 8 * n + e % 2] = narrow<T>(gradient);
          }
        }
      });
      multiply_columns<T, D, PRODUCTS>(sums_1, ones, gradients, tile_1);
      if constexpr (KEYS) multiply_columns<T, D, PRODUCTS>(sums_2, ones, weights, tile_2);
    }
    if constexpr (STAGES == 1) {
      __syncthreads();
      if (step + 1 < count) load_step(step + 1, next_column, next_head);
      cp_async_commit();
    }
  }
  cp_async_wait<0>();
  __syncthreads();  // also where no step waited for the rows, whose place the results take

  first += batch * problem.first[0] + head * problem.first[1];
  store_rows<T, D>(sums_1, scales, own_1, first, problem.first[2], row, rows, problem.width);
  if constexpr (KEYS) {
    second += batch * problem.second[0] + head * problem.second[1];
    store_rows<T, D>(sums_2, ones, own_2, second, problem.second[2], row, rows,
                     problem.value_width);
  }
}
