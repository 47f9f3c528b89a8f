// The gradients of attention of single precision on Hopper, by products of half floats.
//
// Op:          attention_backward
// Math:        p = exp(s - lse), ds = p (g v^T - delta), gq = scale ds k, gk = scale ds^T q,
//              gv = p^T g; numbers in two parts as in attention_float_sm90.cu
// Layout:      parts, units and numbers as attention_float_sm90.cu's split leaves them, by tensor
//              maps; the gradients: rows of unit stride and whole packs of 16 bytes
// Launch:      grid heads ceil(rows / R), R = 64 GROUPS, block 128 GROUPS; shared bytes: queries
//              8 D (R + 96) + 56, keys 8 D (R + 64 STAGES) + 512 STAGES + 8 (2 STAGES + 1)
// Cost:        42 L S D FLOPs of half floats a head, half of it if causal: bound by the tensor
//              cores
// Types:       float -> float
// Determinism: bit for bit: no atomics, the gradients of keys and of queries are two launches
// Limits:      as in attention_float_sm90.cu
// Variants:    D: 64 or 128, where half as many warpgroups have room
// Instances:   attention_queries_float_sm90<64,2,2,true>: 128 registers, 0 bytes shared
//   attention_queries_float_sm90<64,2,2,false>: 128 registers, 0 bytes shared
//   attention_queries_float_sm90<128,2,1,true>: 255 registers, 0 bytes shared
//   attention_queries_float_sm90<128,2,1,false>: 255 registers, 0 bytes shared
//   attention_keys_float_sm90<64,1,2,2,true>: 255 registers, 0 bytes shared
//   attention_keys_float_sm90<64,1,2,2,false>: 255 registers, 0 bytes shared
//   attention_keys_float_sm90<128,1,2,1,true>: 255 registers, 0 bytes shared
//   attention_keys_float_sm90<128,1,2,1,false>: 255 registers, 0 bytes shared
// Source:      as in attention_float_sm90.cu
// Measured:    NVIDIA H200, 2026-11-23, attention_backward.cu and PyTorch beside it. 16x12x1024x64
//              causal: 646 us (queries 208, keys 306, the splits and delta 136); 1700 and 2184. The
//              gradients are off by 4.0e-7 to 4.6e-7 of their norms; 6.7e-7 to 1.0e-6. Not causal:
//              1040 us. 16x6x1024x128: 691 us; 2158. 1x12x128x64: 29 us; 37. Keys by two warpgroups
//              that share a block, with three stages or two: 313 us

#include "common.cuh"
#include "mma.cuh"
#include "wgmma.cuh"
#include "attention_tile.cuh"
#include "attention_sm90.cuh"
#include "attention_parts.cuh"

// ---------------------------------------------------------------------------- device helpers

// ---------------------------------------------------------------------------- kernels

// A block serves 64 GROUPS queries of one head, a warpgroup 64 of them; keys and values pass by, 64
// at a time. A tile of values is done with sooner than its keys: three buffers serve both.
template <int D, int GROUPS, int BLOCKS, bool CAUSAL>
__global__ void __launch_bounds__(128 * GROUPS, BLOCKS)
    attention_queries_float_sm90(const __grid_constant__ TensorMap q,
                                 const __grid_constant__ TensorMap k,
                                 const __grid_constant__ TensorMap v,
                                 const __grid_constant__ TensorMap g,
                                 const float* __restrict__ q_units,
                                 const float* __restrict__ k_units,
                                 const float* __restrict__ v_units,
                                 const float* __restrict__ g_units,
                                 const float* __restrict__ numbers, const Heads heads, int section,
                                 float scale, float* __restrict__ first) {
  constexpr int ROWS = 64 * GROUPS, N = UNIT_ROWS, TILE = N * 2 * D;
  extern __shared__ __align__(1024) unsigned char memory[];
  __half* rows_1 = reinterpret_cast<__half*>(memory);  // q
  __half* rows_2 = rows_1 + ROWS * 2 * D;              // g
  __half* passing = rows_2 + ROWS * 2 * D;             // values, keys, values, ...
  Barrier* ready = reinterpret_cast<Barrier*>(passing + 3 * TILE);
  const Ring<3, 4 * GROUPS, 2 * TILE> ring(ready + 1);

  const int length = heads.length, size = heads.size, count = heads.count;
  const int tiles = (length + ROWS - 1) / ROWS;
  const Place place(tiles, section);
  const int at = place.head, row0 = (CAUSAL ? tiles - 1 - place.rank : place.rank) * ROWS;
  const int batch = at / count, head = at % count, shared = head / static_cast<int>(heads.groups);
  const int steps = ((CAUSAL ? min(row0 + ROWS, size) : size) + N - 1) / N;

  auto load_next = [&](int turn) {  // turn 2 t: values of step t, turn 2 t + 1: its keys
    load_tile<2 * D, N>(passing + turn % 3 * TILE, turn % 2 ? k : v, ring.claimed(turn),
                        turn / 2 * N, shared, batch);
  };
  if (threadIdx.x == 0) {
    make_barrier(ready, 1);
    ring.make();
    fence_barriers();
    arrive_expecting(ready, ROWS * D * 8);
    load_tile<2 * D, ROWS>(rows_1, q, ready, row0, head, batch);
    load_tile<2 * D, ROWS>(rows_2, g, ready, row0, head, batch);
    if (steps > 0) {
      load_next(0);
      load_next(1);
    }
  }
  __syncthreads();

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = threadIdx.x / 128;
  const int row = row0 + warp * 16, group_row = row0 + group * 64;
  const __half* own_1 = rows_1 + group * 64 * PANEL;
  const __half* own_2 = rows_2 + group * 64 * PANEL;
  const int row_tiles = (length + N - 1) / N, size_tiles = (size + N - 1) / N;
  const int key_tile = at / static_cast<int>(heads.groups) * size_tiles;
  k_units += key_tile;
  v_units += key_tile;
  float q_unit = 0.0f, g_unit = 0.0f, own_lse[2] = {}, own_delta[2] = {};
  if (group_row < length) {
    const int tile = at * row_tiles + group_row / N;
    q_unit = q_units[tile];
    g_unit = g_units[tile];
    const int64_t padded = static_cast<int64_t>(row_tiles) * N;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float* from = numbers + at * 2 * padded + row + 8 * h + lane / 4;
      own_lse[h] = from[0];
      own_delta[h] = from[padded];
    }
  }
  const float most_v = largest_unit(v_units, size_tiles);
  const float scale_2 = scale * LOG2_E * q_unit;
  const float to_gradients = two_to_the(GRADIENTS - POWERS) / most_v;
  const float gradient_unit = two_to_the(-GRADIENTS) * g_unit * most_v;
  float sums[D / 2];
#pragma unroll
  for (int i = 0; i < D / 2; ++i) sums[i] = 0.0f;

  // the rest of the steps is others'
  const int own_steps =
      group_row >= length ? 0 : CAUSAL ? min(steps, group_row / N + 1) : steps;
  wait(ready, 0);
#pragma unroll 1
  for (int step = 0; step < own_steps; ++step) {
    const float k_unit = k_units[step], to_powers = powers_of(scale_2, k_unit);
    const float to_gradient = to_gradients * v_units[step];
    const int turn = 2 * step, column = step * N;
    ring.await(turn);
    ring.await(turn + 1);
    const __half* values = passing + turn % 3 * TILE;
    const __half* keys = passing + (turn + 1) % 3 * TILE;

    float scores[N / 2], part[D / 2];  // for registers: first the gradients of weights, then gq
    float(&gradients)[N / 2] = reinterpret_cast<float(&)[N / 2]>(part);
    wgmma_fence();
    begin_rows_of_parts<D, ROWS, N>(scores, own_1, keys);
    wgmma_commit();
    begin_rows_of_parts<D, ROWS, N>(gradients, own_2, values);
    wgmma_commit();
    if (threadIdx.x == 0 && step + 1 < steps) load_next(turn + 2);
    __syncwarp();
    wgmma_wait<1>();
    hold(scores);
    if (CAUSAL && row - column < N) mask<N, false>(scores, row - column);
    if (size - column < N) mask_beyond<N>(scores, size - column);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      scores[i] = power_of_two(fmaf(scores[i], to_powers, -own_lse[i / 2 % 2]));
    }
    wgmma_wait<0>();
    hold(gradients);
    ring.release(turn);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      gradients[i] = scores[i] * fmaf(gradients[i], to_gradient, -own_delta[i / 2 % 2]);
    }
    const PartsOfScores<N> parts(gradients);
    if (threadIdx.x == 0 && step + 1 < steps) load_next(turn + 3);
    __syncwarp();
    wgmma_fence();
    begin_columns_of_parts<D, N>(part, parts, keys);
    wgmma_commit();
    wgmma_wait<0>();
    hold(part);
    ring.release(turn + 1);
    add_part(sums, part, gradient_unit * k_unit);
  }
#pragma unroll 1
  for (int step = own_steps; step < steps; ++step) {
    const int turn = 2 * step;
    if (threadIdx.x == 0 && step + 1 < steps) load_next(turn + 2);
    __syncwarp();
    ring.await(turn);
    ring.await(turn + 1);
    ring.release(turn);
    ring.release(turn + 1);
    if (threadIdx.x == 0 && step + 1 < steps) load_next(turn + 3);
    __syncwarp();
  }

  const float scales[2] = {scale, scale};
  first += batch * heads.first[0] + head * heads.first[1];
  store_floats<D>(sums, scales, first, heads.first[2], row, length, heads.width);
}

// A block serves 64 GROUPS keys of one head, a warpgroup 64 of them; queries, gradients of the
// result and their numbers pass by, 64 at a time, through STAGES buffers.
template <int D, int GROUPS, int STAGES, int BLOCKS, bool CAUSAL>
__global__ void __launch_bounds__(128 * GROUPS, BLOCKS)
    attention_keys_float_sm90(const __grid_constant__ TensorMap q,
                              const __grid_constant__ TensorMap k,
                              const __grid_constant__ TensorMap v,
                              const __grid_constant__ TensorMap g,
                              const __grid_constant__ TensorMap numbers,
                              const float* __restrict__ q_units, const float* __restrict__ k_units,
                              const float* __restrict__ v_units, const float* __restrict__ g_units,
                              const Heads heads, int section, float scale,
                              float* __restrict__ first, float* __restrict__ second) {
  constexpr int ROWS = 64 * GROUPS, N = UNIT_ROWS, TILE = N * 2 * D;
  extern __shared__ __align__(1024) unsigned char memory[];
  __half* rows_1 = reinterpret_cast<__half*>(memory);  // k
  __half* rows_2 = rows_1 + ROWS * 2 * D;              // v
  __half* passing = rows_2 + ROWS * 2 * D;             // per stage: q, then g
  float* passing_numbers = reinterpret_cast<float*>(passing + STAGES * 2 * TILE);  // lse, delta
  Barrier* ready = reinterpret_cast<Barrier*>(passing_numbers + STAGES * 2 * N);
  const Ring<STAGES, 4 * GROUPS, 4 * TILE + 8 * N> ring(ready + 1);

  const int length = heads.length, size = heads.size, groups = heads.groups;
  const int query_heads = heads.count, count = query_heads / groups;
  const int tiles = (size + ROWS - 1) / ROWS;
  const Place place(tiles, section);
  const int at = place.head, row0 = place.rank * ROWS;
  const int batch = at / count, head = at % count;
  const int leader = batch * query_heads + head * groups;  // the first query head
  const int begin = CAUSAL ? row0 : 0;
  const int steps = length > begin ? (length - begin + N - 1) / N : 0;
  const int all_steps = steps * groups;  // one query head of the group after the other

  auto load_step = [&](int step) {
    const int stage = step % STAGES, column = begin + step % steps * N;
    const int query_head = head * groups + step / steps;
    __half* to = passing + stage * 2 * TILE;
    Barrier* full = ring.claimed(step);
    load_tile<2 * D, N>(to, q, full, column, query_head, batch);
    load_tile<2 * D, N>(to + TILE, g, full, column, query_head, batch);
    load_box(passing_numbers + stage * 2 * N, numbers, full, column, 0, leader + step / steps);
  };
  constexpr int AHEAD = STAGES > 2 ? STAGES - 2 : 1;  // leaves one to warpgroups that are behind
  if (threadIdx.x == 0) {
    make_barrier(ready, 1);
    ring.make();
    fence_barriers();
    arrive_expecting(ready, ROWS * D * 8);
    load_tile<2 * D, ROWS>(rows_1, k, ready, row0, head, batch);
    load_tile<2 * D, ROWS>(rows_2, v, ready, row0, head, batch);
    for (int step = 0; step < AHEAD && step < all_steps; ++step) load_step(step);
  }
  __syncthreads();

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = threadIdx.x / 128;
  const int row = row0 + warp * 16, group_row = row0 + group * 64;
  const __half* own_1 = rows_1 + group * 64 * PANEL;
  const __half* own_2 = rows_2 + group * 64 * PANEL;
  const int row_tiles = (length + N - 1) / N, size_tiles = (size + N - 1) / N;
  const float most_v = largest_unit(v_units + at * size_tiles, size_tiles);
  const int own_tile = at * size_tiles + min(group_row / N, size_tiles - 1);
  const float scale_2 = scale * LOG2_E * k_units[own_tile];
  const float to_gradient = two_to_the(GRADIENTS - POWERS) * (v_units[own_tile] / most_v);
  q_units += leader * row_tiles;
  g_units += leader * row_tiles;
  float sums_1[D / PANEL][PANEL / 2] = {}, sums_2[D / PANEL][PANEL / 2] = {};

  wait(ready, 0);
#pragma unroll 1
  for (int step = 0; step < all_steps; ++step) {
    const int column = begin + step % steps * N, tile = step / steps * row_tiles + column / N;
    const float q_unit = q_units[tile], g_unit = g_units[tile];
    if (threadIdx.x == 0 && step + AHEAD < all_steps) load_step(step + AHEAD);
    __syncwarp();
    ring.await(step);
    if (group_row >= size || (CAUSAL && column + N <= group_row)) {
      ring.release(step);
      continue;
    }
    const __half* tile_1 = passing + step % STAGES * 2 * TILE;
    const __half* tile_2 = tile_1 + TILE;
    const float* values = passing_numbers + step % STAGES * 2 * N + lane % 4 * 2;

    float weights[N / 2], gradients[N / 2];  // their registers take the products as well
    wgmma_fence();
    begin_rows_of_parts<D, ROWS, N>(weights, own_1, tile_1);
    wgmma_commit();
    begin_rows_of_parts<D, ROWS, N>(gradients, own_2, tile_2);
    wgmma_commit();
    wgmma_wait<1>();
    hold(weights);
    if (CAUSAL && row + 16 > column) mask<N, true>(weights, row - column);
    const float to_powers = powers_of(scale_2, q_unit);
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
      const Pack<float, 2> peak = load<2>(values + 8 * n);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float& weight = weights[4 * n + e];
        weight = power_of_two(fmaf(weight, to_powers, -peak[e % 2]));
      }
    }
    wgmma_wait<0>();
    hold(gradients);
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
      const Pack<float, 2> delta = load<2>(values + N + 8 * n);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float& gradient = gradients[4 * n + e];
        gradient = weights[4 * n + e] * fmaf(gradient, to_gradient, -delta[e % 2]);
      }
    }
    const float unit_1 = two_to_the(-GRADIENTS) * g_unit * most_v * q_unit;
    const float unit_2 = two_to_the(-POWERS) * g_unit;
    const PartsOfScores<N> parts(weights);
    if constexpr (D == PANEL) {
      wgmma_fence();
      begin_columns_of_parts<D>(weights, parts, tile_2);
      wgmma_commit();
      const PartsOfScores<N> gradient_parts(gradients);
      wgmma_fence();
      begin_columns_of_parts<D>(gradients, gradient_parts, tile_1);
      wgmma_commit();
      wgmma_wait<1>();
      hold(weights);
      add_part(sums_2[0], weights, unit_2);
      wgmma_wait<0>();
      hold(gradients);
      ring.release(step);
      add_part(sums_1[0], gradients, unit_1);
    } else {
      const PartsOfScores<N> gradient_parts(gradients);
#pragma unroll
      for (int panel = 0; panel < D / PANEL; ++panel) {
        wgmma_fence();
        begin_columns_of_parts<D>(weights, parts, tile_2, panel);
        wgmma_commit();
        wgmma_wait<0>();
        hold(weights);
        add_part(sums_2[panel], weights, unit_2);
      }
#pragma unroll
      for (int panel = 0; panel < D / PANEL; ++panel) {
        wgmma_fence();
        begin_columns_of_parts<D>(weights, gradient_parts, tile_1, panel);
        wgmma_commit();
        wgmma_wait<0>();
        hold(weights);
        add_part(sums_1[panel], weights, unit_1);
      }
      ring.release(step);
    }
  }

  const float scales[2] = {scale, scale}, ones[2] = {1.0f, 1.0f};
  first += batch * heads.first[0] + head * heads.first[1];
  second += batch * heads.second[0] + head * heads.second[1];
#pragma unroll
  for (int panel = 0; panel < D / PANEL; ++panel) {
    const int column = panel * PANEL;
    store_floats<PANEL>(sums_1[panel], scales, first + column, heads.first[2], row, size,
                        static_cast<int>(heads.width) - column);
    store_floats<PANEL>(sums_2[panel], ones, second + column, heads.second[2], row, size,
                        static_cast<int>(heads.value_width) - column);
  }
}
