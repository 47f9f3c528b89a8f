// The weight's gradient of a convolution by 3x3 on Hopper's products of warpgroups.
//
// Op:          conv_backward_weight
// Math:        gw[o, c, k] = sum over images n, pixels p of g[n, o, p] x[n, c, p s - pad + k]: for
//              each tap a product over the pixels. A product's step takes one column of 16 (tf32:
//              8) rows of the output, of one image or of several, and the next step the next
//              column. So all taps read one tile of x in shared memory, each from another row and
//              column of it on
// Layout:      g and x by pixels (NHWC), channels padded to 16 bytes, as in conv2d.cu
// Launch:      grid (output tiles * channel tiles, splits of the sets of rows), block 384, shared
//              4 stages of 128 (4 or 8 columns * 17 + MET (slots + 1)), of tf32 4 stages of
//              9216 + 272 MET slots, and 12288 MET for what is turned; slots = STRIDE (rows + 3 -
//              STRIDE) images, MET = columns STRIDE + 3 - STRIDE
// Cost:        18 n p o c FLOPs, on tensor cores. Of L2, g once for every 64 channels, and x 1.4 to
//              2.3 times (more for images below 8 rows) for every 64 outputs
// Types:       float -> float (rounded to tf32), half, bfloat16 -> float
// Determinism: bit for bit: fixed order; conv2d_weight_reduce sums the splits in order
// Limits:      kernels of 3x3, no dilation, no groups, 33 channels and outputs or more; stride 1,
//              of 16-bit types also 2. A NaN or infinity in x may reach taps that do not meet it
// Variants:    16-bit types: both operands MN-major from shared memory, a row of taps is a product
//              of 192 columns. tf32 takes K-major ones only: each warpgroup turns the columns of x
//              its row of taps meets while the products before run, and holds g in registers
//              Slower, kernel alone, 64 channels of 32x32 (68 us tf32, 30 bfloat16): a warpgroup
//              that copies (69, 31); what is turned swizzled (73). Without its copies tf32 takes 46 us,
//              without its products 50: the copies' instructions are the next thing to save
// Instances:   conv2d_weight_warpgroups<float,4,1>: 168 registers, 1280 bytes shared
//   conv2d_weight_warpgroups<__half,4,1>: 168 registers, 1280 bytes shared
//   conv2d_weight_warpgroups<__nv_bfloat16,8,1>: 168 registers, 1280 bytes shared
//   conv2d_weight_warpgroups<__half,4,2>: 168 registers, 1280 bytes shared
//   conv2d_weight_warpgroups<__nv_bfloat16,4,2>: 168 registers, 1280 bytes shared
// Source:      Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014; PTX ISA,
//              matrices of wgmma in shared memory
// Measured:    NVIDIA H200, with the reduction, 128 images, 2026-11-23: tf32, 64 channels of 32x32
//              72 us (134 TFLOP/s; cuDNN 109 us), 128 of 16x16 74, 256 of 8x8 74, 512 of 4x4 81;
//              bfloat16 35 (276 TFLOP/s; cuDNN 36), 34, 34, 39; 512 images, bfloat16: 90 (430
//              TFLOP/s), 106 for 512 of 4x4

#include "common.cuh"
#include "mma.cuh"
#include "wgmma.cuh"
#include "divisor.cuh"

// ---------------------------------------------------------------------------- device helpers

constexpr int TAPS = 3;         // of the kernel, down and across; a warpgroup has a row of them
constexpr int THREADS = 128 * TAPS;
constexpr int TILE = 64;        // outputs and channels of a block
constexpr int MOST_SLOTS = 64;  // rows of x that a set of output rows meets

// A stage is COLUMNS columns of RUNS output rows, and the columns of x they meet. In shared memory,
// 16-bit types: a column is [8 channels][row][16 bytes], an odd number of rows (one is not used),
// so that the pieces of a pixel lie in different banks, and any 8 neighbouring rows are 128 bytes
// in order, as products take them. float: a column is [row][channels].
template <typename T, int COLUMNS, int STRIDE>
struct Stage {
  static constexpr bool WIDE = sizeof(T) == 4;
  static constexpr int RUNS = 32 / sizeof(T);
  static constexpr int NUMBER = 4;
  static constexpr int VEC = 16 / sizeof(T), PACKS = TILE / VEC, LANES = THREADS / PACKS;
  static constexpr int MET = COLUMNS * STRIDE + TAPS - STRIDE;  // columns of x
  // Bytes from a row to the next, and from 16 bytes of a pixel to the next
  static constexpr int G_ROW = WIDE ? 4 * TILE + 32 : 16, G_PACK = WIDE ? 16 : (RUNS + 1) * 16;
  static constexpr int X_ROW = WIDE ? 4 * TILE + 16 : 16;
  static constexpr int G_COLUMN = WIDE ? RUNS * G_ROW : PACKS * G_PACK;
  static constexpr int G_BYTES = COLUMNS * G_COLUMN;
  // float: x as products take it, [half of the runs][column][channel][4 runs], of a warpgroup
  static constexpr int HALF = MET * TILE * 16, TURNED = 2 * HALF;
  static __device__ __forceinline__ int x_pack(int slots) { return WIDE ? 16 : (slots + 1) * 16; }
  static __device__ __forceinline__ int x_column(int slots) {
    return WIDE ? slots * X_ROW : PACKS * x_pack(slots);
  }
  static_assert(STRIDE == 1 || STRIDE == 2, "windows that overlap");
};

// A set is `down` neighbouring rows of the output in each of `images` neighbouring images, RUNS of
// them together: run = row * images + image. The rows of x that it meets lie in slots in the same
// order; of stride 2, those of even number before those of odd number. So a row of taps meets RUNS
// slots that follow each other.
struct Sets {
  int64_t image;             // elements from one to the next in x
  int number, split, images, down, slots;  // sets: all, of one split
  int outputs, g_pitch, g_packs, batch, out_height, out_width, height, width, pitch, packs;
  int padding_height, padding_width;
  int stage, stages;         // stage: its bytes; stages: of a set
  Divisor by_rows;           // sets of the same images
};

// Descriptors for wgmma without a swizzle. Of [8 channels][row][16 bytes], `pitch` bytes from
// 8 channels to the next: MN-major. Of [half][channel][4 runs], `half` bytes from one to the next:
// K-major.
__device__ __forceinline__ uint64_t by_rows(const void* tile, int pitch) {
  return make_descriptor(tile, 128, pitch) ^ (1ull << 62);
}
__device__ __forceinline__ uint64_t by_channels(const void* tile, int half) {
  return make_descriptor(tile, half, 128) ^ (1ull << 62);
}

// A warp's share of turning the columns of x that a row of taps meets, from [row][channel] (the
// first row is at `from`) to [half][column][channel][4 runs], rounded to tf32.
template <typename S>
__device__ __forceinline__ void turn(const char* from, int column_pitch, char* to) {
  const int lane = threadIdx.x % 32, half = lane / 16;
#pragma unroll
  for (int unit = 0; unit < S::MET / 2; ++unit) {  // half the channels of a column
    const int i = threadIdx.x % 128 / 32 + 4 * unit, column = i / 2;
    const int channel = i % 2 * 32 + lane % 16;  // and the one 16 further on
    const char* at = from + column * column_pitch + 4 * half * S::X_ROW + 4 * channel;
    Pack<float, 4> runs[2];  // all read before any is stored: a read does not wait for a store
#pragma unroll
    for (int j = 0; j < 2; ++j) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        runs[j][r] = *reinterpret_cast<const float*>(at + r * S::X_ROW + 64 * j);
      }
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
#pragma unroll
      for (int r = 0; r < 4; ++r) runs[j][r] = __uint_as_float(to_tf32(runs[j][r]));
      store(reinterpret_cast<float*>(to + half * S::HALF + (column * TILE + channel + 16 * j) * 16),
            runs[j]);
    }
  }
}

// The products' first operand for a stage's columns: of a warp's 16 outputs, neighbours are rows
// that differ by 8.
template <typename S, int COLUMNS>
__device__ __forceinline__ void read_g(float (&a)[COLUMNS][4], const char* from) {
  const int lane = threadIdx.x % 32;
  from += threadIdx.x % 128 / 32 * 64 + lane / 4 * 8 + lane % 4 * S::G_ROW;
#pragma unroll
  for (int column = 0; column < COLUMNS; ++column) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Pack<float, 2> pair = load<2>(
          reinterpret_cast<const float*>(from + column * S::G_COLUMN + 4 * half * S::G_ROW));
      a[column][2 * half] = pair[0], a[column][2 * half + 1] = pair[1];
    }
  }
}

// ---------------------------------------------------------------------------- kernels

// A tile is 64 outputs by 64 channels by all taps, summed over one split of the sets of rows:
// sums[split, output, tap, channel].
template <typename T, int COLUMNS, int STRIDE>
__global__ void __launch_bounds__(THREADS, 1)
    conv2d_weight_warpgroups(const T* __restrict__ g, const T* __restrict__ x, const Sets s,
                             float* __restrict__ sums) {
  typedef Stage<T, COLUMNS, STRIDE> S;
  constexpr int RUNS = S::RUNS, STAGES = S::NUMBER, VEC = S::VEC, PACKS = S::PACKS;
  extern __shared__ __align__(16) char tiles[];
  __shared__ int64_t places[2][RUNS + MOST_SLOTS];  // of this set's rows, and of the next one's

  const int tiles_down = (s.outputs + TILE - 1) / TILE;
  const int o0 = blockIdx.x % tiles_down * TILE, c0 = blockIdx.x / tiles_down * TILE;
  const int begin = blockIdx.y * s.split, end = min(begin + s.split, s.number);
  const int x_pack = S::x_pack(s.slots), x_column = S::x_column(s.slots);

  const int pack = threadIdx.x % PACKS, lane = threadIdx.x / PACKS;
  const bool g_live = o0 / VEC + pack < s.g_packs, x_live = c0 / VEC + pack < s.packs;
  const T* g_from = g + (o0 + pack * VEC);
  const T* x_from = x + (c0 + pack * VEC);
  int next_set = begin, next_stage = 0;
  // Where the rows of the next set begin, from the block's first channel; negative: zeros.
  const auto place_rows = [&]() {
    const int group = s.by_rows.of(next_set);
    const int first = (next_set - group * static_cast<int>(s.by_rows.value)) * s.down;
    for (int i = threadIdx.x; i < RUNS + s.slots; i += THREADS) {
      const bool is_x = i >= RUNS;
      const int slot = is_x ? i - RUNS : i;
      const int place = slot / s.images, n = group * s.images + slot - place * s.images;
      int h = first + place, height = s.out_height, width = s.out_width, pitch = s.g_pitch;
      if (is_x) {
        const int half = s.slots / s.images / 2;
        const int row = STRIDE == 2 ? (place < half ? 2 * place : 2 * (place - half) + 1) : place;
        h = first * STRIDE + row - s.padding_height;
        height = s.height, width = s.width, pitch = s.pitch;
      }
      const int64_t image = is_x ? s.image : static_cast<int64_t>(height) * width * pitch;
      const bool inside =
          n < s.batch && static_cast<unsigned>(h) < static_cast<unsigned>(height);
      const int64_t offset = inside ? n * image + static_cast<int64_t>(h) * width * pitch : -1;
      places[next_set % 2][i] = offset;
    }
  };
  const auto fetch = [&](char* tile) {  // the next stage
    constexpr int AT_ONCE = 4;  // rows looked up before their copies: those wait for no look-up
    const int64_t* rows = places[next_set % 2];
    const int first = next_stage * COLUMNS, left = first * STRIDE - s.padding_width;
    const auto copy = [&](int count, int columns, int begin, int width, int pitch, bool live,
                          const T* from, char* to, int column_bytes, int row_bytes) {
#pragma unroll 1
      for (int i = lane; i < count; i += AT_ONCE * S::LANES) {
        int64_t at[AT_ONCE];
        int row[AT_ONCE], column[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
          const int j = min(i + k * S::LANES, count - 1);
          row[k] = j / columns, column[k] = j - row[k] * columns;
          at[k] = rows[row[k]];
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
          if (i + k * S::LANES >= count) break;
          const int v = begin + column[k];
          const bool inside =
              live && at[k] >= 0 && static_cast<unsigned>(v) < static_cast<unsigned>(width);
          cp_async<16>(to + column[k] * column_bytes + row[k] * row_bytes,
                       inside ? from + (at[k] + static_cast<int64_t>(v) * pitch) : g, inside);
        }
      }
    };
    copy(COLUMNS * RUNS, COLUMNS, first, s.out_width, s.g_pitch, g_live, g_from,
         tile + pack * S::G_PACK, S::G_COLUMN, S::G_ROW);
    rows += RUNS;
    copy(S::MET * s.slots, S::MET, left, s.width, s.pitch, x_live, x_from,
         tile + S::G_BYTES + pack * x_pack, x_column, S::X_ROW);
    if (++next_stage == s.stages) {
      next_stage = 0, ++next_set;
      place_rows();
    }
  };

  const int kh = threadIdx.x / 128;
  const int first_slot =
      (STRIDE == 1 ? kh : kh / 2 + kh % 2 * (s.slots / s.images / 2)) * s.images;
  float d[TAPS * TILE / 2] = {};  // the row's taps side by side
  const int steps = (end - begin) * s.stages;
  const auto stage_at = [&](int i) { return tiles + i * s.stage; };
  place_rows();
#pragma unroll 1
  for (int stage = 0; stage < STAGES - !S::WIDE; ++stage) {
    __syncthreads();  // the rows' places are known
    if (stage < steps) fetch(stage_at(stage));
    cp_async_commit();
  }
  int read = 0;
  if constexpr (S::WIDE) {
    // While the products of a stage run, the next stage is turned, and its place is filled again.
    char* turned = stage_at(STAGES) + kh * 2 * S::TURNED;
    const int first = S::G_BYTES + first_slot * S::X_ROW;
    float next[COLUMNS][4];
    cp_async_wait<STAGES - 1>();
    __syncthreads();
    turn<S>(tiles + first, x_column, turned);
    read_g<S>(next, tiles);
    int buffer = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      uint32_t a[COLUMNS][4];
#pragma unroll
      for (int column = 0; column < COLUMNS; ++column) {
#pragma unroll
        for (int i = 0; i < 4; ++i) a[column][i] = to_tf32(next[column][i]);
      }
      cp_async_wait<STAGES - 2>();
      fence_shared();
      __syncthreads();  // the next stage is there for all, and this one is turned
      const uint64_t b = by_channels(turned + buffer * S::TURNED, S::HALF);
      hold(d);
      wgmma_fence();
#pragma unroll
      for (int column = 0; column < COLUMNS; ++column) {
        wgmma<T>(d, a[column], advance(b, column * STRIDE * TILE * 16), true);
      }
      wgmma_commit();
      if (step + STAGES < steps) fetch(stage_at(read));
      cp_async_commit();
      read = read + 1 == STAGES ? 0 : read + 1;
      buffer ^= 1;
      turn<S>(stage_at(read) + first, x_column, turned + buffer * S::TURNED);
      read_g<S>(next, stage_at(read));
      wgmma_wait<0>();
      hold(d);
    }
  } else {
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      cp_async_wait<STAGES - 2>();
      fence_shared();
      __syncthreads();  // this stage is there for all, and all are done with the one before
      const char* tile = stage_at(read);
      const uint64_t a = by_rows(tile, S::G_PACK);
      const uint64_t b = by_rows(tile + S::G_BYTES + first_slot * S::X_ROW, x_pack);
      hold(d);
      wgmma_fence();
#pragma unroll
      for (int column = 0; column < COLUMNS; ++column) {
        wgmma<T, true, true>(d, advance(a, column * S::G_COLUMN),
                             advance(b, column * STRIDE * x_column), true);
      }
      wgmma_commit();
      if (step + STAGES - 1 < steps) fetch(stage_at(read == 0 ? STAGES - 1 : read - 1));
      cp_async_commit();
      wgmma_wait<0>();
      hold(d);
      read = read + 1 == STAGES ? 0 : read + 1;
    }
  }

  const int padded = s.packs * VEC, t = threadIdx.x % 4;
  const int first = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 * (S::WIDE ? 2 : 1);
  sums += static_cast<int64_t>(blockIdx.y) * s.outputs * (TAPS * TAPS * padded);
#pragma unroll
  for (int lower = 0; lower < 2; ++lower) {
    const int o = o0 + first + lower * (S::WIDE ? 1 : 8);
    if (o >= s.outputs) continue;
    float* to = sums + (static_cast<int64_t>(o) * TAPS * TAPS + kh * TAPS) * padded;
#pragma unroll
    for (int j = 0; j < TAPS * TILE / 8; ++j) {
      const int tap = j / (TILE / 8), channel = c0 + j % (TILE / 8) * 8 + 2 * t;
      const Pack<float, 2> pair = {d[4 * j + 2 * lower], d[4 * j + 2 * lower + 1]};
      if (channel < padded) store(to + tap * padded + channel, pair);
    }
  }
}
