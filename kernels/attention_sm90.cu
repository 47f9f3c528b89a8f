// Attention of two-byte types on Hopper's tensor cores, the weights made again backward.
//
// Op:          attention, attention_backward
// Math:        s = scale q k^T, lse = log(sum(exp(s))), p = exp(s - lse), out = p v; delta =
//              sum(g out), ds = p (g v^T - delta), gq = scale ds k, gk = scale ds^T q, gv = p^T g
// Layout:      q, k, v, g: by tensor maps of (column, row, head, batch), rows of unit stride, other
//              strides multiples of 16 bytes, columns beyond the head size are zeros; out and the
//              gradients: rows of unit stride and whole packs of 16 bytes; lse, numbers: contiguous
// Launch:      grid heads ceil(rows / R), R = 64 GROUPS, block 128 GROUPS; shared bytes: forward
//              2 D (R + 2 STAGES N) + 8 B, backward 4 D (R + STAGES N) + 8 B, for keys 8 STAGES N
//              more; B = 2 STAGES + 1. The gradient of queries first: it makes `numbers`
// Cost:        4 L S D FLOPs a head forward, 14 L S D backward, half of it if causal; L S powers in
//              each launch, which at D = 64 (16 a clock) take as long as the products forward
// Types:       half, bfloat16 -> float
// Determinism: bit for bit: no atomics, the gradients of keys and of queries are two launches
// Limits:      compute capability 9.0; no mask, no dropout, scale > 0; head sizes up to 128; what
//              has no more than 64 rows and columns, and all else, is left to attention.cu
// Variants:    D: the head size, rounded up to 64 or 128. While a warpgroup works on numbers the
//              products of others run: at D = 64 a multiprocessor has four of them forward and for
//              queries, three for keys; at D = 128 four, three and two
// Instances:   attention_forward_sm90<__half,64,2,128,2,2,false>: 128 registers, 0 bytes shared
//   attention_forward_sm90<__nv_bfloat16,64,2,128,2,2,true>: 128 registers, 0 bytes shared
//   attention_forward_sm90<__nv_bfloat16,128,2,64,2,2,true>: 128 registers, 0 bytes shared
//   attention_forward_sm90<__half,128,2,64,2,2,false>: 128 registers, 0 bytes shared
//   attention_backward_sm90<__nv_bfloat16,64,1,64,3,3,true,true>: 168 registers, 0 bytes shared
//   attention_backward_sm90<__half,64,1,64,3,3,false,true>: 168 registers, 0 bytes shared
//   attention_backward_sm90<__nv_bfloat16,64,2,64,3,2,true,false>: 128 registers, 0 bytes shared
//   attention_backward_sm90<__half,64,2,64,3,2,false,false>: 128 registers, 0 bytes shared
//   attention_backward_sm90<__nv_bfloat16,128,2,64,2,1,true,true>: 255 registers, 0 bytes shared
//   attention_backward_sm90<__nv_bfloat16,128,3,64,2,1,true,false>: 168 registers, 0 bytes shared
// Source:      Dao, FlashAttention-2 (2023); Shah et al., FlashAttention-3 (2024); Milakov and
//              Gimelshein, Online softmax (2018)
// Measured:    NVIDIA H200, bfloat16, 2026-11-23, PyTorch (cuDNN) beside it. 16x12x1024x64 causal:
//              forward 80.5 us, 320 TFLOP/s, PyTorch 82.3; backward 234 us, 276 TFLOP/s (queries
//              106, keys 130), PyTorch 292. Not causal: 125 and 390 us, PyTorch 126 and 452.
//              16x6x1024x128 causal: 69.7 and 230 us, PyTorch 71 and 251. 4x12x4096x64 causal: 228
//              and 754 us, PyTorch 271 and 734. What lost: forward N 64 (87 us), N columns at once
//              on the diagonal as well (82.7), keys and values by barriers of their own (82.4),
//              three stages (81.1), the next tile's scores in flight beside the sums (91), fewer
//              warpgroups that overlap with themselves (100 to 127), sections of one head (88) and
//              of all (83). Backward with the next tile's scores in flight: queries 119 us and
//              more, keys 153 and more; keys by two warpgroups 170, by three that share a block
//              150; delta by its own launch 16 more

#include "common.cuh"
#include "mma.cuh"
#include "wgmma.cuh"
#include "attention_tile.cuh"
#include "attention_sm90.cuh"

// ---------------------------------------------------------------------------- device helpers

// How many steps ahead of its own one thread loads: with more than two buffers it leaves one to
// warpgroups that are behind.
template <int STAGES>
constexpr int AHEAD = STAGES > 2 ? STAGES - 2 : 1;

// A number of columns, as a value.
template <int COUNT>
struct Width {
  static constexpr int value = COUNT;
};

// ---------------------------------------------------------------------------- kernels

// A block serves 64 GROUPS rows of one head, a warpgroup 64 of them; keys and values pass by, N at
// a time, through STAGES buffers.
template <typename T, int D, int GROUPS, int N, int STAGES, int BLOCKS, bool CAUSAL>
__global__ void __launch_bounds__(128 * GROUPS, BLOCKS)
    attention_forward_sm90(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
                           const __grid_constant__ TensorMap v, const Heads heads, int section,
                           float scale, T* __restrict__ out, float* __restrict__ lse) {
  static_assert(sizeof(T) == 2 && D % PANEL == 0 && N % 32 == 0, "whole products");
  constexpr int ROWS = 64 * GROUPS, TILE = N * D;
  extern __shared__ __align__(1024) unsigned char memory[];
  T* queries = reinterpret_cast<T*>(memory);
  T* passing = queries + ROWS * D;  // per stage: keys, then values
  Barrier* ready = reinterpret_cast<Barrier*>(passing + STAGES * 2 * TILE);
  const Ring<STAGES, 4 * GROUPS, 4 * TILE> ring(ready + 1);

  const int length = heads.length, size = heads.size, count = heads.count;
  const int tiles = (length + ROWS - 1) / ROWS;
  const Place place(tiles, section);
  const int at = place.head, row0 = (CAUSAL ? tiles - 1 - place.rank : place.rank) * ROWS;
  const int batch = at / count, head = at % count, shared = head / static_cast<int>(heads.groups);
  const int steps = ((CAUSAL ? min(row0 + ROWS, size) : size) + N - 1) / N;

  auto load_step = [&](int step) {
    T* to = passing + step % STAGES * 2 * TILE;
    Barrier* full = ring.claimed(step);
    load_tile<D, N>(to, k, full, step * N, shared, batch);
    load_tile<D, N>(to + TILE, v, full, step * N, shared, batch);
  };
  if (threadIdx.x == 0) {
    make_barrier(ready, 1);
    ring.make();
    fence_barriers();
    arrive_expecting(ready, ROWS * D * 2);
    load_tile<D, ROWS>(queries, q, ready, row0, head, batch);
    for (int step = 0; step < AHEAD<STAGES> && step < steps; ++step) load_step(step);
  }
  __syncthreads();

  const int warp = threadIdx.x / 32, group = threadIdx.x / 128;
  const int row = row0 + warp * 16, group_row = row0 + group * 64;
  const T* own = queries + group * 64 * PANEL;
  const float scale_2 = scale * LOG2_E;
  float sums[D / 2];
  PassingSoftmax<8, 0> softmax;
#pragma unroll
  for (int i = 0; i < D / 2; ++i) sums[i] = 0.0f;

  // Takes in WIDTH columns; on the diagonal some of them lie behind the rows.
  auto take_in = [&](auto width, int column, const T* keys, const T* values, bool diagonal) {
    constexpr int WIDTH = decltype(width)::value;
    float scores[WIDTH / 2];
    wgmma_fence();
    begin_rows<D, ROWS, WIDTH, N>(scores, own, keys);
    wgmma_commit();
    wgmma_wait<0>();
    hold(scores);
    if (diagonal && row - column < WIDTH) mask<WIDTH, false>(scores, row - column);
    if (size - column < WIDTH) mask_beyond<WIDTH>(scores, size - column);
    softmax.template take_in<WIDTH, D>(scores, scale_2, sums);
    uint32_t weights[WIDTH / 16][4];
    narrowed<T, WIDTH>(weights, scores);
    wgmma_fence();
    begin_columns<D, WIDTH, N>(sums, weights, values);
    wgmma_commit();
    wgmma_wait<0>();
    hold(sums);
  };

  // Columns before all of the block's rows by N, then those on the diagonal by 64.
  const int whole = CAUSAL ? min(row0 / N, steps) : steps;
  wait(ready, 0);
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    if (threadIdx.x == 0 && step + AHEAD<STAGES> < steps) load_step(step + AHEAD<STAGES>);
    __syncwarp();
    ring.await(step);
    const int column = step * N;
    const T* keys = passing + step % STAGES * 2 * TILE;
    if (group_row >= length) {
      ring.release(step);
      continue;
    }
    if (!CAUSAL || step < whole) {
      take_in(Width<N>(), column, keys, keys + TILE, false);
    } else {
      const int own_end = min(group_row + 64, size);
#pragma unroll 1
      for (int part = 0; part < N && column + part < own_end; part += 64) {
        const T* within = keys + part * PANEL;
        take_in(Width<64>(), column + part, within, within + TILE, true);
      }
    }
    ring.release(step);
  }

  float factors[2];
  softmax.finish(factors, lse + static_cast<int64_t>(at) * length, row, length);
  __syncthreads();  // the queries make place for the results
  out += batch * heads.first[0] + head * heads.first[1];
  store_rows<D, ROWS>(sums, factors, queries, warp * 16, out, heads.first[2], row, length,
                      heads.value_width);
}

// Queries first (not KEYS): a block serves 64 GROUPS queries of one head, a warpgroup 64 of them;
// keys pass by, N at a time, through STAGES buffers; `first` is the gradient of q. For the second
// launch it leaves what a row of queries needs: numbers[head][0] = lse in powers of two,
// numbers[head][1] = delta, zeros from `length` to `padded`. Then KEYS: keys are served, queries
// and their numbers pass by; `first` and `second` are the gradients of k and v.
template <typename T, int D, int GROUPS, int N, int STAGES, int BLOCKS, bool CAUSAL, bool KEYS>
__global__ void __launch_bounds__(128 * GROUPS, BLOCKS)
    attention_backward_sm90(const __grid_constant__ TensorMap q,
                            const __grid_constant__ TensorMap k,
                            const __grid_constant__ TensorMap v,
                            const __grid_constant__ TensorMap g,
                            const __grid_constant__ TensorMap number_map,
                            const T* __restrict__ out, const float* __restrict__ lse,
                            const Heads heads, int section, float scale,
                            float* __restrict__ numbers, int padded, T* __restrict__ first,
                            T* __restrict__ second) {
  static_assert(sizeof(T) == 2 && D % PANEL == 0 && N % 32 == 0, "whole products");
  constexpr int ROWS = 64 * GROUPS, TILE = N * D, NUMBERS = KEYS ? 2 * N : 0;
  extern __shared__ __align__(1024) unsigned char memory[];
  T* rows_1 = reinterpret_cast<T*>(memory);  // k or q
  T* rows_2 = rows_1 + ROWS * D;             // v or g
  T* passing = rows_2 + ROWS * D;            // per stage: q or k, then g or v
  float* passing_numbers = reinterpret_cast<float*>(passing + STAGES * 2 * TILE);  // lse, delta
  Barrier* ready = reinterpret_cast<Barrier*>(passing_numbers + STAGES * NUMBERS);
  const Ring<STAGES, 4 * GROUPS, 4 * TILE + 4 * NUMBERS> ring(ready + 1);

  const int length = heads.length, size = heads.size, groups = heads.groups;
  const int query_heads = heads.count, own_heads = KEYS ? query_heads / groups : query_heads;
  const int rows = KEYS ? size : length, columns = KEYS ? length : size;
  const int tiles = (rows + ROWS - 1) / ROWS;
  const Place place(tiles, section);
  const int at = place.head;
  const int row0 = (CAUSAL && !KEYS ? tiles - 1 - place.rank : place.rank) * ROWS;
  const int batch = at / own_heads, head = at % own_heads;

  const int begin = CAUSAL && KEYS ? row0 : 0;  // row0 is a multiple of N
  const int end = CAUSAL && !KEYS ? min(row0 + ROWS, columns) : columns;
  const int steps = end > begin ? (end - begin + N - 1) / N : 0;
  const int count = KEYS ? steps * groups : steps;  // one query head of the group after the other

  auto load_step = [&](int step) {
    const int stage = step % STAGES, column = begin + step % steps * N;
    T* to = passing + stage * 2 * TILE;
    Barrier* full = ring.claimed(step);
    if constexpr (KEYS) {
      const int query_head = head * groups + step / steps;
      load_tile<D, N>(to, q, full, column, query_head, batch);
      load_tile<D, N>(to + TILE, g, full, column, query_head, batch);
      load_box(passing_numbers + stage * NUMBERS, number_map, full, column, 0,
               batch * query_heads + query_head);
    } else {
      load_tile<D, N>(to, k, full, column, head / groups, batch);
      load_tile<D, N>(to + TILE, v, full, column, head / groups, batch);
    }
  };
  if (threadIdx.x == 0) {
    make_barrier(ready, 1);
    ring.make();
    fence_barriers();
    arrive_expecting(ready, ROWS * D * 4);
    load_tile<D, ROWS>(rows_1, KEYS ? k : q, ready, row0, head, batch);
    load_tile<D, ROWS>(rows_2, KEYS ? v : g, ready, row0, head, batch);
    for (int step = 0; step < AHEAD<STAGES> && step < count; ++step) load_step(step);
  }
  __syncthreads();

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = threadIdx.x / 128;
  const int row = row0 + warp * 16, group_row = row0 + group * 64;
  const T* own_1 = rows_1 + group * 64 * PANEL;
  const T* own_2 = rows_2 + group * 64 * PANEL;
  const float scale_2 = scale * LOG2_E;
  float sums_1[D / 2], sums_2[D / 2];
#pragma unroll
  for (int i = 0; i < D / 2; ++i) sums_1[i] = sums_2[i] = 0.0f;

  float own_lse[2], own_delta[2];
  if constexpr (KEYS) {
    wait(ready, 0);
  } else {
    constexpr int PACKS = D / 8 / 4;  // of a row, that a lane multiplies
    out += batch * heads.second[0] + head * heads.second[1];
    Pack<T, 8> results[2][PACKS];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int p = 0; p < PACKS; ++p) {
        const int i = row + 8 * h + lane / 4, column = (4 * p + lane % 4) * 8;
        const bool real = i < length && column < static_cast<int>(heads.value_width);
        results[h][p] = real ? load<8>(out + i * heads.second[2] + column) : Pack<T, 8>{};
      }
    }
    wait(ready, 0);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int i = row + 8 * h + lane / 4;
      float sum = 0.0f;
#pragma unroll
      for (int p = 0; p < PACKS; ++p) {
        const Pack<T, 8> x = load<8>(place_of<ROWS>(rows_2, i - row0, 4 * p + lane % 4));
#pragma unroll
        for (int e = 0; e < 8; ++e) sum += widen(x[e]) * widen(results[h][p][e]);
      }
      own_delta[h] = warp_reduce<Sum, 4>(sum);
      own_lse[h] = i < length ? lse[static_cast<int64_t>(at) * length + i] * LOG2_E : 0.0f;
      if (lane % 4 == 0 && i < padded) {
        float* to = numbers + static_cast<int64_t>(at) * 2 * padded + i;
        to[0] = own_lse[h];
        to[padded] = own_delta[h];
      }
    }
  }
#pragma unroll 1
  for (int step = 0; step < count; ++step) {
    if (threadIdx.x == 0 && step + AHEAD<STAGES> < count) load_step(step + AHEAD<STAGES>);
    __syncwarp();
    ring.await(step);
    const int column = begin + step % steps * N;
    if (group_row >= rows ||
        (CAUSAL && (KEYS ? column + N <= group_row : column >= group_row + 64))) {
      ring.release(step);
      continue;
    }
    const T* tile_1 = passing + step % STAGES * 2 * TILE;
    const T* tile_2 = tile_1 + TILE;
    const float* values = passing_numbers + step % STAGES * NUMBERS + lane % 4 * 2;

    float weights[N / 2], gradients[N / 2];
    wgmma_fence();
    begin_rows<D, ROWS, N>(weights, own_1, tile_1);
    wgmma_commit();
    begin_rows<D, ROWS, N>(gradients, own_2, tile_2);
    wgmma_commit();
    wgmma_wait<1>();
    hold(weights);
    if (CAUSAL && (KEYS ? row + 16 > column : row - column < N)) {
      mask<N, KEYS>(weights, row - column);
    }
    if (!KEYS && size - column < N) mask_beyond<N>(weights, size - column);
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
      Pack<float, 2> passing_lse;
      if constexpr (KEYS) passing_lse = load<2>(values + 8 * n);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float& weight = weights[4 * n + e];
        const float minus = KEYS ? -passing_lse[e % 2] : -own_lse[e / 2];
        weight = power_of_two(fmaf(weight, scale_2, minus));
      }
    }
    wgmma_wait<0>();
    hold(gradients);
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
      Pack<float, 2> delta;
      if constexpr (KEYS) delta = load<2>(values + N + 8 * n);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float& gradient = gradients[4 * n + e];
        gradient = weights[4 * n + e] * (gradient - (KEYS ? delta[e % 2] : own_delta[e / 2]));
      }
    }
    uint32_t packed[N / 16][4], packed_gradients[N / 16][4];
    if constexpr (KEYS) narrowed<T, N>(packed, weights);
    narrowed<T, N>(packed_gradients, gradients);
    wgmma_fence();
    begin_columns<D, N>(sums_1, packed_gradients, tile_1);
    if constexpr (KEYS) begin_columns<D, N>(sums_2, packed, tile_2);
    wgmma_commit();
    wgmma_wait<0>();
    hold(sums_1);
    if constexpr (KEYS) hold(sums_2);
    ring.release(step);
  }

  __syncthreads();  // the rows make place for the results
  const float scales[2] = {scale, scale}, ones[2] = {1.0f, 1.0f};
  first += batch * heads.first[0] + head * heads.first[1];
  store_rows<D, ROWS>(sums_1, scales, rows_1, warp * 16, first, heads.first[2], row, rows,
                      heads.width);
  if constexpr (KEYS) {
    second += batch * heads.second[0] + head * heads.second[1];
    store_rows<D, ROWS>(sums_2, ones, rows_2, warp * 16, second, heads.second[2], row, rows,
                        heads.value_width);
  }
}
