// Attention of two-byte types by warpgroup products: online softmax, weights again backward.
//
// Op:          attention, attention_backward

#include "common.cuh"
#include "mma.cuh"
#include "wgmma.cuh"
#include "attention_tile.cuh"
#include "attention_sm90.cuh"

// ---------------------------------------------------------------------------- device helpers

// Sizes, and strides in elements; the host packs it as one row of 64-bit integers.
struct Problem {
  int64_t heads, groups, length, size;  // of q; query heads of a key head; rows of q; rows of k
  int64_t width, value_width;           // of q and k; of v: whole packs
  int64_t threshold;                    // words of philox below it keep a weight
  int64_t q[3], k[3], v[3], g[3];       // batch, head, row; g: of out in the forward pass
  int64_t first[3], second[3];          // of the gradients
  int64_t mask[4];                      // batch, head, row, column
};

// Tiles begin at multiples of 1024 bytes, which the launch does not promise.
__device__ __forceinline__ unsigned char* aligned(unsigned char* memory) {
  return memory + (-shared_address(memory) & 1023);
}

// ---------------------------------------------------------------------------- kernels

// A block serves 64 GROUPS rows of one head, a warpgroup 64 of them; keys and values pass by, N at a
// time, through two buffers.
template <typename T, int D, int GROUPS, int N, int BLOCKS, bool CAUSAL>
__global__ void __launch_bounds__(128 * GROUPS, BLOCKS)
    attention_forward_sm90(const T* __restrict__ q, const T* __restrict__ k,
                           const T* __restrict__ v, const Problem problem, float scale,
                           T* __restrict__ out, float* __restrict__ lse) {
  constexpr int ROWS = 64 * GROUPS, THREADS = 128 * GROUPS, TILE = N * D;
  extern __shared__ __align__(16) unsigned char memory[];
  T* queries = reinterpret_cast<T*>(aligned(memory));
  T* passing = queries + ROWS * D;  // per buffer: keys, then values

  const int length = problem.length, size = problem.size;
  const int tiles = (length + ROWS - 1) / ROWS, heads = problem.heads;
  const int place = blockIdx.x % tiles, at = blockIdx.x / tiles;
  const int row0 = (CAUSAL ? tiles - 1 - place : place) * ROWS;  // the longest first
  const int batch = at / heads, head = at % heads, shared = head / int(problem.groups);
  q += batch * problem.q[0] + head * problem.q[1];
  k += batch * problem.k[0] + shared * problem.k[1];
  v += batch * problem.v[0] + shared * problem.v[1];

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = threadIdx.x / 128;
  const int row = row0 + warp * 16, group_row = row0 + group * 64;
  const int end = CAUSAL ? min(row0 + ROWS, size) : size;
  const float scale_2 = scale * LOG2_E;

  auto load_step = [&](int column, int buffer) {
    T* to = passing + buffer * 2 * TILE;
    load_panels<T, D, N, THREADS>(to, k, problem.k[2], column, size, problem.width);
    load_panels<T, D, N, THREADS>(to + TILE, v, problem.v[2], column, size, problem.value_width);
  };
  load_panels<T, D, ROWS, THREADS>(queries, q, problem.q[2], row0, length, problem.width);
  load_step(0, 0);
  cp_async_commit();

  float sums[D / 2], base[2] = {-infinity(), -infinity()}, total[2] = {0.0f, 0.0f};
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[4 * n + e] = 0.0f;
  }
  const uint64_t own = k_major(queries + group * 64 * PANEL);

  int buffer = 0;
#pragma unroll 1
  for (int column = 0; column < end; column += N, buffer ^= 1) {
    cp_async_wait<0>();
    fence_shared();
    __syncthreads();
    if (column + N < end) {
      load_step(column + N, buffer ^ 1);
      cp_async_commit();
    }
    if (group_row >= length || (CAUSAL && column >= group_row + 64)) continue;
    const T* keys = passing + buffer * 2 * TILE;

    float scores[N / 2];
    wgmma_fence();
    begin_rows<T, D, ROWS, N>(scores, own, k_major(keys));
    wgmma_commit();
    wgmma_wait<0>();
    hold(scores);
    const int live = size - column, ahead = row - column;
    if (live < N || (CAUSAL && ahead < N)) {
#pragma unroll
      for (int n = 0; n < N / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int i = lane / 4 + e / 2 * 8, j = 8 * n + lane % 4 * 2 + e % 2;
          if (j >= live || (CAUSAL && j - i > ahead)) scores[4 * n + e] = -infinity();
        }
      }
    }
    float peak[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      peak[h] = fmaxf(scores[2 * h], scores[2 * h + 1]);
#pragma unroll
      for (int n = 1; n < N / 8; ++n) {
        peak[h] = fmaxf(peak[h], fmaxf(scores[4 * n + 2 * h], scores[4 * n + 2 * h + 1]));
      }
      peak[h] = fmaxf(peak[h], __shfl_xor_sync(0xffffffffu, peak[h], 1));
      peak[h] = fmaxf(peak[h], __shfl_xor_sync(0xffffffffu, peak[h], 2)) * scale_2;
    }
    // Any base will do that keeps the powers small: it follows the largest score from afar.
    if (__any_sync(0xffffffffu, peak[0] > base[0] + 8.0f || peak[1] > base[1] + 8.0f)) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float higher = fmaxf(peak[h], base[h]);
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
    uint32_t weights[N / 16][4];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float minus = base[h] == -infinity() ? 0.0f : -base[h];
#pragma unroll
      for (int n = 0; n < N / 8; ++n) {
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; ++e) {
          scores[4 * n + e] = power_of_two(fmaf(scores[4 * n + e], scale_2, minus));
          total[h] += scores[4 * n + e];
        }
      }
    }
    narrowed<T, N>(weights, scores);
    wgmma_fence();
    begin_columns<T, D, N>(sums, weights, mn_major(keys + TILE, N * 128));
    wgmma_commit();
    wgmma_wait<0>();
    hold(sums);
  }
  __syncthreads();  // the queries' place takes the results

  float factors[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
    total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
    factors[h] = total[h] == 0.0f ? 0.0f : 1.0f / total[h];
    const int i = row + 8 * h + lane / 4;
    if (lane % 4 == 0 && i < length) {
      lse[static_cast<int64_t>(at) * length + i] = total[h] == 0.0f ? infinity() : base[h] * LN_2 + logf(total[h]);
    }
  }
  out += batch * problem.g[0] + head * problem.g[1];
  store_panels<T, D, ROWS>(sums, factors, queries, warp * 16, out, problem.g[2], row, length,
                           problem.value_width);
}

// KEYS: a block serves 64 GROUPS keys of one head, a warpgroup 64 of them; queries pass by, `first`
// and `second` are the gradients of k and v. Else it serves queries, keys pass by, and `first` is
// the gradient of q. N rows pass at a time, through STAGES buffers.
template <typename T, int D, int GROUPS, int N, int STAGES, int BLOCKS, bool CAUSAL, bool KEYS>
__global__ void __launch_bounds__(128 * GROUPS, BLOCKS)
    attention_backward_sm90(const T* __restrict__ q, const T* __restrict__ k,
                            const T* __restrict__ v, const T* __restrict__ g,
                            const float* __restrict__ lse, const float* __restrict__ delta,
                            const Problem problem, float scale, T* __restrict__ first,
                            T* __restrict__ second) {
  constexpr int ROWS = 64 * GROUPS, THREADS = 128 * GROUPS, TILE = N * D;
  extern __shared__ __align__(16) unsigned char memory[];
  T* rows_1 = reinterpret_cast<T*>(aligned(memory));  // k or q
  T* rows_2 = rows_1 + ROWS * D;                      // v or g
  T* passing = rows_2 + ROWS * D;                     // per stage: q or k, then g or v
  float* numbers = reinterpret_cast<float*>(passing + STAGES * 2 * TILE);  // lse, delta

  const int length = problem.length, size = problem.size, groups = problem.groups;
  const int rows = KEYS ? size : length, columns = KEYS ? length : size;
  const int heads = KEYS ? int(problem.heads) / groups : int(problem.heads);
  const int tiles = (rows + ROWS - 1) / ROWS;
  const int place = blockIdx.x % tiles, at = blockIdx.x / tiles;
  const int row0 = (CAUSAL && !KEYS ? tiles - 1 - place : place) * ROWS;
  const int batch = at / heads, head = at % heads;
  const int shared = KEYS ? head : head / groups;
  const int leader = KEYS ? head * groups : head;  // the first query head
  q += batch * problem.q[0];
  k += batch * problem.k[0] + shared * problem.k[1];
  v += batch * problem.v[0] + shared * problem.v[1];
  g += batch * problem.g[0];

  const int begin = CAUSAL && KEYS ? row0 : 0;  // row0 is a multiple of N
  const int end = CAUSAL && !KEYS ? min(row0 + ROWS, columns) : columns;
  const int steps = end > begin ? (end - begin + N - 1) / N : 0;
  const int count = KEYS ? steps * groups : steps;

  auto load_step = [&](int step) {
    const int stage = step % STAGES;
    T* to = passing + stage * 2 * TILE;
    const int column = begin + step % steps * N;
    if constexpr (KEYS) {
      const int query_head = leader + step / steps;
      load_panels<T, D, N, THREADS>(to, q + query_head * problem.q[1], problem.q[2], column,
                                    length, problem.width);
      load_panels<T, D, N, THREADS>(to + TILE, g + query_head * problem.g[1], problem.g[2], column,
                                    length, problem.value_width);
      float* values = numbers + stage * 2 * N;
      if (threadIdx.x < 2 * N) {
        const int i = threadIdx.x % N;
        const float* from = threadIdx.x < N ? lse : delta;
        const bool wanted = column + i < length;
        from += static_cast<int64_t>(batch * int(problem.heads) + query_head) * length;
        cp_async<4>(values + threadIdx.x, wanted ? from + column + i : from, wanted);
      }
    } else {
      load_panels<T, D, N, THREADS>(to, k, problem.k[2], column, size, problem.width);
      load_panels<T, D, N, THREADS>(to + TILE, v, problem.v[2], column, size,
                                    problem.value_width);
    }
  };

  if constexpr (KEYS) {
    load_panels<T, D, ROWS, THREADS>(rows_1, k, problem.k[2], row0, size, problem.width);
    load_panels<T, D, ROWS, THREADS>(rows_2, v, problem.v[2], row0, size, problem.value_width);
  } else {
    load_panels<T, D, ROWS, THREADS>(rows_1, q + head * problem.q[1], problem.q[2], row0, length,
                                     problem.width);
    load_panels<T, D, ROWS, THREADS>(rows_2, g + head * problem.g[1], problem.g[2], row0, length,
                                     problem.value_width);
  }
#pragma unroll
  for (int step = 0; step < STAGES - 1; ++step) {
    if (step < count) load_step(step);
    cp_async_commit();
  }

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = threadIdx.x / 128;
  const int row = row0 + warp * 16, group_row = row0 + group * 64;
  const float scale_2 = scale * LOG2_E;
  float own_lse[2] = {0.0f, 0.0f}, own_delta[2] = {0.0f, 0.0f};
  if constexpr (!KEYS) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int i = row + 8 * h + lane / 4;
      if (i < length) {
        own_lse[h] = lse[static_cast<int64_t>(at) * length + i] * LOG2_E;
        own_delta[h] = delta[static_cast<int64_t>(at) * length + i];
      }
    }
  }

  float sums_1[D / 2], sums_2[D / 2];
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sums_1[4 * n + e] = sums_2[4 * n + e] = 0.0f;
  }
  const uint64_t own_1 = k_major(rows_1 + group * 64 * PANEL);
  const uint64_t own_2 = k_major(rows_2 + group * 64 * PANEL);

#pragma unroll 1
  for (int step = 0; step < count; ++step) {
    cp_async_wait<STAGES - 2>();
    fence_shared();
    __syncthreads();
    if (step + STAGES - 1 < count) load_step(step + STAGES - 1);
    cp_async_commit();
    const int column = begin + step % steps * N;
    if (group_row >= rows) continue;
    if (CAUSAL && (KEYS ? column + N <= group_row : column >= group_row + 64)) continue;
    const T* tile_1 = passing + step % STAGES * 2 * TILE;
    const T* tile_2 = tile_1 + TILE;
    const float* values = numbers + step % STAGES * 2 * N;

    float weights[N / 2], gradients[N / 2];
    wgmma_fence();
    begin_rows<T, D, ROWS, N>(weights, own_1, k_major(tile_1));
    wgmma_commit();
    begin_rows<T, D, ROWS, N>(gradients, own_2, k_major(tile_2));
    wgmma_commit();
    wgmma_wait<1>();
    hold(weights);
    // row and column here are what the block owns and what passes: i and j, or j and i
    const int live = columns - column, ahead = row - column;
    if (KEYS ? CAUSAL && ahead > -16 : live < N || (CAUSAL && ahead < N)) {
#pragma unroll
      for (int n = 0; n < N / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int r = lane / 4 + e / 2 * 8, c = 8 * n + lane % 4 * 2 + e % 2;
          if ((!KEYS && c >= live) || (CAUSAL && (KEYS ? c - r < ahead : c - r > ahead))) {
            weights[4 * n + e] = -infinity();
          }
        }
      }
    }
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
      const Pack<float, 2> passing_lse = load<2>(values + 8 * n + lane % 4 * 2);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float minus = KEYS ? passing_lse[e % 2] * -LOG2_E : -own_lse[e / 2];
        weights[4 * n + e] = power_of_two(fmaf(weights[4 * n + e], scale_2, minus));
      }
    }
    uint32_t packed[N / 16][4];
    wgmma_wait<0>();
    hold(gradients);
    if constexpr (KEYS) {
      narrowed<T, N>(packed, weights);
      wgmma_fence();
      begin_columns<T, D, N>(sums_2, packed, mn_major(tile_2, N * 128));
      wgmma_commit();
    }
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
      const Pack<float, 2> passing_delta = load<2>(values + N + 8 * n + lane % 4 * 2);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        gradients[4 * n + e] = weights[4 * n + e] *
                          (gradients[4 * n + e] - (KEYS ? passing_delta[e % 2] : own_delta[e / 2]));
      }
    }
    uint32_t packed_gradients[N / 16][4];
    narrowed<T, N>(packed_gradients, gradients);
    wgmma_fence();
    begin_columns<T, D, N>(sums_1, packed_gradients, mn_major(tile_1, N * 128));
    wgmma_commit();
    wgmma_wait<0>();
    hold(sums_1);
    if constexpr (KEYS) hold(sums_2);
  }
  cp_async_wait<0>();
  __syncthreads();  // the rows' place takes the results

  const float scales[2] = {scale, scale}, ones[2] = {1.0f, 1.0f};
  first += batch * problem.first[0] + head * problem.first[1];
  store_panels<T, D, ROWS>(sums_1, scales, rows_1, warp * 16, first, problem.first[2], row, rows,
                           problem.width);
  if constexpr (KEYS) {
    second += batch * problem.second[0] + head * problem.second[1];
    store_panels<T, D, ROWS>(sums_2, ones, rows_2, warp * 16, second, problem.second[2], row, rows,
                             problem.value_width);
  }
}
