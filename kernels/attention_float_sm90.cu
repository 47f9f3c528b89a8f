// Attention of single precision on Hopper's tensor cores, by products of half floats.
//
// Op:          attention, attention_backward
// Math:        as in attention_sm90.cu; x = unit (high + low), see attention_parts.cuh, and
//              x y = unit unit (high high + high low + low high)
// Layout:      split: rows of unit stride and whole packs of 16 bytes; parts: contiguous, (head,
//              row, 2 D), by tensor maps; units: (head, ceil(rows / 64)); out: rows of unit stride
//              and whole packs; lse, numbers: contiguous
// Launch:      split: grid heads ceil(rows / 64), block 256. Forward: grid heads ceil(L / R),
//              R = 64 GROUPS, block 128 GROUPS, shared 4 D (R + 2 STAGES 64) + 16 STAGES
// Cost:        split: rows read once and written once, bound by memory; forward: 12 L S D FLOPs of
//              half floats a head, half of it if causal, bound by the tensor cores
// Types:       float -> float
// Determinism: bit for bit
// Limits:      compute capability 9.0; no mask, no dropout, scale > 0; head sizes up to 128; a row
//              that is more than 2^18 times shorter than one it shares a unit with loses bits;
//              infinities become NaN, and sums of v are up to 2^15 times as large on the way.
//              Where TF32 is allowed, what has no more than 64 rows and columns, and all else, is
//              left to attention.cu
// Variants:    D: the head size, rounded up to 64 or 128. WITH_DELTA: of the gradient of out, with
//              the numbers of a row of queries. Keys and values are split once for all blocks,
//              queries by the warp that multiplies them
// Instances:   attention_forward_float_sm90<64,2,2,2,true>: 128 registers, 0 bytes shared
//   attention_forward_float_sm90<64,2,2,2,false>: 128 registers, 0 bytes shared
//   attention_forward_float_sm90<128,2,2,1,true>: 255 registers, 0 bytes shared
//   attention_forward_float_sm90<128,2,2,1,false>: 255 registers, 0 bytes shared
//   attention_split_sm90<64,false>: 64 registers, 1088 bytes shared
//   attention_split_sm90<64,true>: 64 registers, 1088 bytes shared
//   attention_split_sm90<128,false>: 64 registers, 1088 bytes shared
//   attention_split_sm90<128,true>: 64 registers, 1088 bytes shared
// Source:      as in attention_sm90.cu; Ootomo and Yokota, Recovering single precision accuracy
//              from tensor cores (2022)
// Measured:    NVIDIA H200, 2026-11-23, attention.cu and PyTorch beside it. 16x12x1024x64 causal:
//              222 us, 168 of them the products (460 TFLOP/s of half floats); 517 and 879. Off by
//              2.5e-7 of the result's norm; 6.1e-7 and 4.5e-7. Not causal: 333 us. 16x6x1024x128:
//              257 us; 646. 1x12x128x64: 14 us; 17. What lost, of the products: three warpgroups
//              that share a block 194 us, three stages and so one block 204, blocks of 64 rows 203.
//              The split of one operand takes 31 us

#include "common.cuh"
#include "mma.cuh"
#include "wgmma.cuh"
#include "attention_tile.cuh"
#include "attention_sm90.cuh"
#include "attention_parts.cuh"

// ---------------------------------------------------------------------------- device helpers

// Where a weight would lie above 2^POWERS, the base rises until the largest lies LAG powers below.
constexpr int LAG = 8;

// ---------------------------------------------------------------------------- kernels

// x[head][row] in parts. WITH_DELTA: x is the gradient of out, and of each row of it
// numbers[head][0] = lse in powers of two, less POWERS, and numbers[head][1] = delta 2^(GRADIENTS -
// POWERS), in units of x and of its head's largest v; zeros from `rows` to a multiple of 64.
template <int D, bool WITH_DELTA>
__global__ void __launch_bounds__(256)
    attention_split_sm90(const float* __restrict__ x, const float* __restrict__ out,
                         const float* __restrict__ lse, const float* __restrict__ v_units,
                         const Heads heads, __half* __restrict__ parts, float* __restrict__ units,
                         float* __restrict__ numbers) {
  constexpr int LANES = D / 8, STEP = 256 / LANES, STEPS = UNIT_ROWS / STEP;
  __shared__ float shared[8];
  const int rows = heads.length, tiles = (rows + UNIT_ROWS - 1) / UNIT_ROWS;
  const int at = blockIdx.x / tiles, row0 = blockIdx.x % tiles * UNIT_ROWS;
  const int count = heads.count, batch = at / count, head = at % count;
  const int column = threadIdx.x % LANES * 8, row = row0 + threadIdx.x / LANES;
  const int width = heads.width;
  x += batch * heads.first[0] + head * heads.first[1];
  float values[STEPS][8];
#pragma unroll
  for (int s = 0; s < STEPS; ++s) {
    const int i = row + s * STEP;
    load_eight(values[s], x + i * heads.first[2], column, width, i < rows);
  }
  const int exponent = unit_exponent<LANES>(
      values, [&](float y) { return block_reduce<Max, 256>(y, 0.0f, shared); });
  const float scale = two_to_the(-exponent);
  if (threadIdx.x == 0) units[blockIdx.x] = two_to_the(exponent);
  parts += static_cast<int64_t>(at) * rows * 2 * D + column;
#pragma unroll
  for (int s = 0; s < STEPS; ++s) {
    const EightParts eight(values[s], scale);
    const int i = row + s * STEP;
    if (i < rows) {
      __half* to = parts + static_cast<int64_t>(i) * 2 * D;
      store<4>(reinterpret_cast<uint32_t*>(to), eight.high);
      store<4>(reinterpret_cast<uint32_t*>(to + D), eight.low);
    }
  }
  if constexpr (WITH_DELTA) {
    const int64_t padded = static_cast<int64_t>(tiles) * UNIT_ROWS;
    const int v_tiles = (static_cast<int>(heads.size) + UNIT_ROWS - 1) / UNIT_ROWS;
    const float v_unit = largest_unit(v_units + at / heads.groups * v_tiles, v_tiles);
    out += batch * heads.second[0] + head * heads.second[1];
    numbers += at * 2 * padded;
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      const int i = row + s * STEP;
      float results[8], delta = 0.0f;
      load_eight(results, out + i * heads.second[2], column, width, i < rows);
#pragma unroll
      for (int e = 0; e < 8; ++e) delta = fmaf(values[s][e], results[e], delta);
      delta = warp_reduce<Sum, LANES>(delta);
      if (column == 0) {
        numbers[i] =
            i < rows ? lse[static_cast<int64_t>(at) * rows + i] * LOG2_E - POWERS : 0.0f;
        numbers[padded + i] = delta * (scale * two_to_the(GRADIENTS - POWERS)) * (1.0f / v_unit);
      }
    }
  }
}

// A block serves 64 GROUPS rows of one head, a warpgroup 64 of them; keys and values pass by, 64 at
// a time, through STAGES buffers.
template <int D, int GROUPS, int STAGES, int BLOCKS, bool CAUSAL>
__global__ void __launch_bounds__(128 * GROUPS, BLOCKS)
    attention_forward_float_sm90(const float* __restrict__ q, const __grid_constant__ TensorMap k,
                                 const __grid_constant__ TensorMap v,
                                 const float* __restrict__ k_units,
                                 const float* __restrict__ v_units, const Heads heads, int section,
                                 float scale, float* __restrict__ out, float* __restrict__ lse) {
  static_assert(D % PANEL == 0, "whole panels");
  constexpr int ROWS = 64 * GROUPS, N = UNIT_ROWS, TILE = N * 2 * D;
  extern __shared__ __align__(1024) unsigned char memory[];
  __half* queries = reinterpret_cast<__half*>(memory);
  __half* passing = queries + ROWS * 2 * D;  // per stage: keys, then values
  const Ring<STAGES, 4 * GROUPS, 4 * TILE> ring(
      reinterpret_cast<Barrier*>(passing + STAGES * 2 * TILE));

  const int length = heads.length, size = heads.size, count = heads.count;
  const int tiles = (length + ROWS - 1) / ROWS;
  const Place place(tiles, section);
  const int at = place.head, row0 = (CAUSAL ? tiles - 1 - place.rank : place.rank) * ROWS;
  const int batch = at / count, head = at % count, shared = head / static_cast<int>(heads.groups);
  const int steps = ((CAUSAL ? min(row0 + ROWS, size) : size) + N - 1) / N;

  auto load_step = [&](int step) {
    __half* to = passing + step % STAGES * 2 * TILE;
    Barrier* full = ring.claimed(step);
    load_tile<2 * D, N>(to, k, full, step * N, shared, batch);
    load_tile<2 * D, N>(to + TILE, v, full, step * N, shared, batch);
  };
  if (threadIdx.x == 0) {
    ring.make();
    fence_barriers();
    for (int step = 0; step < STAGES - 1 && step < steps; ++step) load_step(step);
  }
  const int warp = threadIdx.x / 32, group = threadIdx.x / 128;
  const int row = row0 + warp * 16, group_row = row0 + group * 64;
  __syncwarp();
  q += batch * heads.second[0] + head * heads.second[1];
  const float scale_2 = scale * LOG2_E *
                        split_rows<D, ROWS>(queries, warp * 16, q, heads.second[2], row, length,
                                            static_cast<int>(heads.width));
  fence_shared();
  __syncthreads();

  const __half* own = queries + group * 64 * PANEL;
  const int tile = at / static_cast<int>(heads.groups) * ((size + N - 1) / N);
  k_units += tile;
  v_units += tile;
  float sums[D / 2];
  PassingSoftmax<POWERS, POWERS - LAG> softmax;
#pragma unroll
  for (int i = 0; i < D / 2; ++i) sums[i] = 0.0f;

#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const float to_powers = powers_of(scale_2, k_units[step]), v_unit = v_units[step];
    if (threadIdx.x == 0 && step + STAGES - 1 < steps) load_step(step + STAGES - 1);
    __syncwarp();
    ring.await(step);
    const int column = step * N;
    if (group_row >= length || (CAUSAL && column >= group_row + 64)) {
      ring.release(step);
      continue;
    }
    const __half* keys = passing + step % STAGES * 2 * TILE;

    float part[D / 2];  // for registers: what the sums take up, and before that the scores
    float(&scores)[N / 2] = reinterpret_cast<float(&)[N / 2]>(part);
    wgmma_fence();
    begin_rows_of_parts<D, ROWS, N>(scores, own, keys);
    wgmma_commit();
    wgmma_wait<0>();
    hold(scores);
    if (CAUSAL && row - column < N) mask<N, false>(scores, row - column);
    if (size - column < N) mask_beyond<N>(scores, size - column);
    softmax.template take_in<N, D>(scores, to_powers, sums);
    const PartsOfScores<N> weights(scores);
    wgmma_fence();
    begin_columns_of_parts<D, N>(part, weights, keys + TILE);
    wgmma_commit();
    wgmma_wait<0>();
    hold(part);
    ring.release(step);
    add_part(sums, part, v_unit);
  }

  float factors[2];
  softmax.finish(factors, lse + static_cast<int64_t>(at) * length, row, length);
  out += batch * heads.first[0] + head * heads.first[1];
  store_floats<D>(sums, factors, out, heads.first[2], row, length, heads.value_width);
}
