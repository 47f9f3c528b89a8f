// Convolutions on Hopper: boxes of pixels by the copy engine, products by warpgroups.
//
// Op:          conv, conv_backward_input
// Math:        y[n, o, p] = b[o] + sum over taps k, channels c of
//              x[n, c, p s - pad + k d] w[o, c, k]
//              gx: the same with the channels' roles exchanged and the taps reversed, a
//              convolution of stride one for each residue of the stride
// Layout:      by tensor maps, strides multiples of 16 bytes: activations by pixels (NHWC), weights
//              rows of (tap, channel), one an output, or if ACROSS of (tap, output), one a channel
// Launch:      block 384: two warpgroups multiply, a thread of the third asks for boxes. Items are
//              tiles * blocks of BN outputs * parts; grid: if SPLIT > 1 SPLIT * items, else as many
//              of them as there is room for. Shared: patch_stages * (rows of a patch * 128, up to a
//              multiple of 1024) + weight_stages * 128 BN, + 32768 if a block has several items; at
//              least PIECES 128 BN (4 + sizeof(T) / SPLIT) if SPLIT > 1
// Cost:        2 n p o c k FLOPs, less the rows that read only zeros, on channels padded to 128
//              bytes. A tile reads a patch once for all taps that are a stride apart, and all of
//              its weights: bound by the tensor cores, by L2 for tiles of 128 x 128. Results
//              leave a block by 16 bytes a cycle, while it does not multiply
// Types:       float -> float (rounded to tf32 by the copy engine), half, bfloat16 -> float
// Determinism: bit for bit
// Limits:      groups, fewer than 64 bytes of channels or 16 outputs, outputs that are no whole
//              packs, strides beyond 8 forward, what lies otherwise
// Variants:    BN outputs; PIECES of PIECE pixels a warpgroup, if more than 64 as the columns of a
//              product whose rows are outputs: with 64 outputs the other way is bound by shared
//              memory; RESIDENT blocks a multiprocessor; SPLIT blocks share the channels where
//              tiles are few; MOMENTS of the results beside them. Chosen by a count of cycles
//              (backends/cupy/convolution_plan.py). Of no use: clusters of 4 (60 us where those of
//              2 take 39: they do not fit all multiprocessors), a thread of its own for patches
//              (123 us where one for both takes 114), blocks that begin one after the other
//              (130 us instead of 134), twice the slots of results (no other time), maps of every
//              second pixel's own for a stride (78 us both ways)
// Instances:   conv2d_hopper<float,128,2,1,1,false,64,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<float,128,1,1,1,false,64,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<float,64,2,1,1,false,64,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<float,64,1,2,1,false,64,false>: 80 registers, 1024 bytes shared
//   conv2d_hopper<float,64,1,1,1,false,256,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<float,64,2,1,1,false,128,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<__nv_bfloat16,64,1,1,1,false,256,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<__half,64,1,1,1,true,256,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<float,128,2,1,2,false,64,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<float,128,1,1,2,false,64,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<float,64,1,2,2,false,64,false>: 80 registers, 1024 bytes shared
//   conv2d_hopper<__half,128,2,1,1,false,64,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<__nv_bfloat16,64,1,2,1,false,64,false>: 80 registers, 1024 bytes shared
//   conv2d_hopper<__nv_bfloat16,64,2,1,1,false,64,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<__half,128,1,1,1,true,64,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<__nv_bfloat16,64,1,2,1,true,64,false>: 80 registers, 1024 bytes shared
//   conv2d_hopper<__nv_bfloat16,128,2,1,2,true,64,false>: 168 registers, 1024 bytes shared
//   conv2d_hopper<float,128,2,1,1,false,64,true>: 168 registers, 1024 bytes shared
//   conv2d_hopper<float,128,1,1,1,false,64,true>: 168 registers, 1024 bytes shared
//   conv2d_hopper<float,64,1,2,1,false,64,true>: 80 registers, 1024 bytes shared
//   conv2d_hopper<float,64,1,1,1,false,256,true>: 168 registers, 1024 bytes shared
//   conv2d_hopper<__nv_bfloat16,128,2,1,1,false,64,true>: 168 registers, 1024 bytes shared
//   conv2d_hopper<__nv_bfloat16,64,2,1,1,false,128,true>: 168 registers, 1024 bytes shared
//   conv2d_hopper<__half,64,1,1,1,false,256,true>: 168 registers, 1024 bytes shared
// Source:      Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014
// Measured:    NVIDIA H200, 2026-11-23, 3x3 in us. 128 images, forward and gradient of the input
//              (cuDNN, channels last). TF32: 64x32x32 41 (53, 59), 128x16x16 31 (48, 51), 256x8x8
//              30 (29, 33), 512x4x4 32 (54, 56); bfloat16: 21 (30, 31), 19 (26, 25), 18 (18, 17),
//              20 (29, 26). 512 images, TF32 / bfloat16: 134 / 71 (outputs as columns 142 / 76),
//              109 / 59, 98 / 51, 86 / 47; stride 2 from 64 to 128 channels forward 78 / 40,
//              back 98 / 51 (outputs as columns 110 / 63)

#include "common.cuh"
#include "mma.cuh"
#include "wgmma.cuh"
#include "conv_moments.cuh"
#include "conv_results.cuh"

// ---------------------------------------------------------------------------- device helpers

constexpr int WARPGROUPS = 2;              // that multiply
constexpr int CONSUMERS = WARPGROUPS * 128;
constexpr int THREADS = CONSUMERS + 128;   // one more warpgroup copies
constexpr int CHUNK = 128;                 // bytes of channels of a row
constexpr int MOST_STAGES = 12;
constexpr int SLOTS = 2;                   // panels of results under way, of a warpgroup
constexpr int PANEL = 64 * CHUNK;          // bytes of 64 pixels and a chunk of outputs

// The pixels' three axes (width, height, images in some order), innermost first. A tile of outputs
// is made of pieces, a product's rows or columns, and they of boxes that are written. Its inputs are
// patches: input = first + slope output + step tap. Taps `period` apart are in one patch, `shift`
// rows further.
struct Pixels {
  int tiles[3], tile[3], piece[3], box[3], patch[3];
  int slope[3], step[3], period[3], shift[3];
  int size[3];  // of the input
};
// One of the convolutions of a launch (a residue of the stride, for the gradient of the input).
struct Part {
  int first[3], taps[3];
  int tap;  // of the weights: tap + sum of tap_step k
};
constexpr int MOST_PARTS = 4;
struct Convolution {
  Pixels pixels;
  Part part[MOST_PARTS];
  int tap_step[3];
  int items, parts, chunks, columns;  // items: tiles of all parts; chunks: of channels; columns:
                                      // blocks of BN outputs
  int outputs, group_stride;   // group_stride: bytes between 8 rows of a piece and the next 8
  int patch_stages, weight_stages;
};
struct Outputs {
  TensorMap map[MOST_PARTS];
};

template <typename F>
__device__ __forceinline__ void each(const int (&count)[3], F f) {
  for (int z = 0; z < count[2]; ++z) {
    for (int y = 0; y < count[1]; ++y) {
      for (int x = 0; x < count[0]; ++x) f(x, y, z);
    }
  }
}

// Calls f(taps, first) for each patch that a part needs: how many taps it serves, and the first.
template <typename F>
__device__ __forceinline__ void each_patch(const Pixels& p, const Part& part, F f) {
  const int patches[3] = {min(part.taps[0], p.period[0]), min(part.taps[1], p.period[1]),
                          min(part.taps[2], p.period[2])};
  each(patches, [&](int x, int y, int z) {
    const int first[3] = {x, y, z};
    int taps[3];
#pragma unroll
    for (int i = 0; i < 3; ++i) taps[i] = (part.taps[i] - first[i] - 1) / p.period[i] + 1;
    f(taps, first);
  });
}

// An item of the grid's work: a tile of a part, and a block of its outputs.
struct Item {
  int part, column, tile[3];
  __device__ __forceinline__ Item(const Convolution& s, int number, int width) {
    const Pixels& p = s.pixels;
    part = number % s.parts, number /= s.parts;
    column = number % s.columns * width, number /= s.columns;
    tile[0] = number % p.tiles[0] * p.tile[0], number /= p.tiles[0];
    tile[1] = number % p.tiles[1] * p.tile[1], number /= p.tiles[1];
    tile[2] = number * p.tile[2];
  }
};

// A place in a ring of stages, and the parity of its round.
struct Turn {
  int stage = 0, parity = 0;
  __device__ __forceinline__ void next(int stages) {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

// Where part n of a whole, both boxes of pixels, begins in it.
struct Place {
  int at[3];
  __device__ __forceinline__ Place(const int (&whole)[3], const int (&part)[3], int n) {
    const int across = whole[0] / part[0], down = whole[1] / part[1];
    at[0] = n % across * part[0];
    at[1] = n / across % down * part[1];
    at[2] = n / across / down * part[2];
  }
};

// ---------------------------------------------------------------------------- kernels

// A tile is WARPGROUPS * PIECES pieces of PIECE pixels by BN outputs. SPLIT blocks, a cluster, share
// the channels of a tile, and each adds up an equal part of its pieces; then the grid covers all
// items, else a block goes on with the item that follows those of the whole grid.
// ACROSS: the weights' outputs, not the channels, follow each other.
// A product's 64 rows are a piece's pixels, or if a piece has more, the outputs.
// MOMENTS: those of the results as they are stored, (3, 2 or 8 rows a block of the same outputs,
// outputs); no tile is cut, and all items of a block are of the same outputs.
template <typename T, int BN, int PIECES, int RESIDENT, int SPLIT, bool ACROSS, int PIECE,
          bool MOMENTS>
__global__ void __launch_bounds__(THREADS, RESIDENT) __cluster_dims__(SPLIT, 1, 1)
    conv2d_hopper(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap w,
                  const __grid_constant__ Outputs y, const T* __restrict__ bias,
                  const __grid_constant__ Convolution s, float* __restrict__ moments) {
  constexpr int LANES = CHUNK / sizeof(T);  // channels of a chunk
  constexpr int WEIGHTS = BN * CHUNK;       // bytes of a stage
  constexpr bool TURNED = PIECE > 64;
  static_assert(!TURNED || (BN == 64 && SPLIT == 1), "a product's rows, of one block");
  static_assert(!MOMENTS || SPLIT == 1, "results are in registers");
  extern __shared__ __align__(1024) char shared[];
  __shared__ Barrier barriers[4][MOST_STAGES];
  Barrier* const patch_full = barriers[0];
  Barrier* const patch_free = barriers[1];
  Barrier* const weights_full = barriers[2];
  Barrier* const weights_free = barriers[3];

  const Pixels& p = s.pixels;
  const int patch_bytes = p.patch[0] * p.patch[1] * p.patch[2] * CHUNK;
  const int patch_stage = (patch_bytes + 1023) / 1024 * 1024;
  char* const patches = shared;
  char* const weights = patches + s.patch_stages * patch_stage;
  const bool alone = s.items * SPLIT <= gridDim.x;  // one item: its results may lie on its stages
  char* const staging = alone ? shared : weights + s.weight_stages * WEIGHTS;
  const int rank = blockIdx.x % SPLIT;
  const int first_chunk = s.chunks * rank / SPLIT, last_chunk = s.chunks * (rank + 1) / SPLIT;

  if (threadIdx.x < MOST_STAGES) {
    make_barrier(patch_full + threadIdx.x, 1);
    make_barrier(patch_free + threadIdx.x, WARPGROUPS);
    make_barrier(weights_full + threadIdx.x, 1);
    make_barrier(weights_free + threadIdx.x, WARPGROUPS);
    fence_barriers();
  }
  __syncthreads();

  const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);  // the warpgroup
  Turn patch, weight;
  if (group == WARPGROUPS) {
    give_registers<RESIDENT == 1 ? 40 : 24>();
    if (threadIdx.x != CONSUMERS) return;
    patch.parity = weight.parity = 1;  // what is free at first
    for (int i = blockIdx.x / SPLIT; i < s.items; i += gridDim.x / SPLIT) {
      const Item item(s, i, BN);
      const Part& part = s.part[item.part];
      for (int chunk = first_chunk; chunk < last_chunk; ++chunk) {
        each_patch(p, part, [&](const int(&taps)[3], const int(&first)[3]) {
          wait(patch_free + patch.stage, patch.parity);
          arrive_expecting(patch_full + patch.stage, patch_bytes);
          load_box(patches + patch.stage * patch_stage, x, patch_full + patch.stage,
                   chunk * LANES,
                   part.first[0] + item.tile[0] * p.slope[0] + first[0] * p.step[0],
                   part.first[1] + item.tile[1] * p.slope[1] + first[1] * p.step[1],
                   part.first[2] + item.tile[2] * p.slope[2] + first[2] * p.step[2]);
          patch.next(s.patch_stages);
          each(taps, [&](int t0, int t1, int t2) {
            wait(weights_free + weight.stage, weight.parity);
            arrive_expecting(weights_full + weight.stage, WEIGHTS);
            const int tap = part.tap + (first[0] + t0 * p.period[0]) * s.tap_step[0] +
                            (first[1] + t1 * p.period[1]) * s.tap_step[1] +
                            (first[2] + t2 * p.period[2]) * s.tap_step[2];
            char* const to = weights + weight.stage * WEIGHTS;
            if constexpr (ACROSS) {
              for (int n = 0; n < BN; n += LANES) {
                load_box(to + n * CHUNK, w, weights_full + weight.stage, item.column + n, tap,
                         chunk * LANES);
              }
            } else {
              load_box(to, w, weights_full + weight.stage, chunk * LANES, tap, item.column);
            }
            weight.next(s.weight_stages);
          });
        });
      }
    }
  } else {
    take_registers<RESIDENT == 1 ? 232 : 104>();
    const bool speaks = threadIdx.x % 128 == 0;
    const int lane = threadIdx.x % 32;
    const uint64_t patch_start = make_descriptor(patches, 16, s.group_stride);
    const uint64_t weight_start = ACROSS ? mn_major(weights, LANES * CHUNK) : k_major(weights);
    const int extent = (p.piece[2] - 1) * p.slope[2];
    constexpr int PANELS = BN / LANES, STRIPS = LANES / 8;  // of a piece; of 8 outputs, of a panel
    Turn slot;
    Tally<BN, PIECES, PIECE> tally;
    for (int number = blockIdx.x / SPLIT; number < s.items; number += gridDim.x / SPLIT) {
      const Item item(s, number, BN);
      const Part& part = s.part[item.part];
      int row[PIECES], start[PIECES];  // of a piece in a patch; of its input along the last axis
#pragma unroll
      for (int i = 0; i < PIECES; ++i) {
        const Place piece(p.tile, p.piece, group * PIECES + i);
        row[i] = piece.at[0] + p.patch[0] * (piece.at[1] + p.patch[1] * piece.at[2]);
        start[i] = part.first[2] + (item.tile[2] + piece.at[2]) * p.slope[2];
      }
      float sums[PIECES][BN * PIECE / 128] = {};
      Barrier* done_patch = nullptr;  // what the products before the last ones read
      Barrier* done_weights = nullptr;
      const auto release = [&] {
        if (speaks) {
          if (done_patch != nullptr) arrive(done_patch);
          if (done_weights != nullptr) arrive(done_weights);
        }
        done_patch = nullptr;
      };
      for (int chunk = first_chunk; chunk < last_chunk; ++chunk) {
        each_patch(p, part, [&](const int(&taps)[3], const int(&first)[3]) {
          wait(patch_full + patch.stage, patch.parity);
          each(taps, [&](int t0, int t1, int t2) {
            const int shift = t0 * p.shift[0] +
                              p.patch[0] * (t1 * p.shift[1] + p.patch[1] * t2 * p.shift[2]);
            const uint64_t a = advance(patch_start, patch.stage * patch_stage + shift * CHUNK);
            const uint64_t b = advance(weight_start, weight.stage * WEIGHTS);
            wait(weights_full + weight.stage, weight.parity);
            bool useful[PIECES], all = true, none = true;  // pieces that read more than zeros
#pragma unroll
            for (int i = 0; i < PIECES; ++i) {
              const int at = start[i] + (first[2] + t2 * p.period[2]) * p.step[2];
              useful[i] = at + extent >= 0 && at < p.size[2];
              all = all && useful[i], none = none && !useful[i];
            }
            const auto multiply = [&](int i, int k) {
              const uint64_t pixels = advance(a, row[i] * CHUNK + k);
              const uint64_t outputs = advance(b, ACROSS ? k / 32 * 2048 : k);
              if constexpr (TURNED) {
                wgmma<T, ACROSS, false>(sums[i], outputs, pixels, true);
              } else {
                wgmma<T, false, ACROSS>(sums[i], pixels, outputs, true);
              }
            };
            // Each group is closed where its products are: elsewhere the compiler would close it
            // with an empty one, which the wait below would take for this tap's.
            if (all) {
              wgmma_fence();
#pragma unroll
              for (int k = 0; k < CHUNK; k += 32) {
#pragma unroll
                for (int i = 0; i < PIECES; ++i) multiply(i, k);
              }
              wgmma_commit();
            } else if (none) {
              wgmma_wait<0>();
            } else {  // one of two
#pragma unroll
              for (int i = 0; i < PIECES; ++i) {
                if (!useful[i]) continue;
                wgmma_fence();
#pragma unroll
                for (int k = 0; k < CHUNK; k += 32) multiply(i, k);
                wgmma_commit();
              }
            }
            wgmma_wait<1>();
            release();
            done_weights = weights_free + weight.stage;
            weight.next(s.weight_stages);
          });
          done_patch = patch_free + patch.stage;
          patch.next(s.patch_stages);
        });
      }
      wgmma_wait<0>();
#pragma unroll
      for (int i = 0; i < PIECES; ++i) hold(sums[i]);
      release();

      if constexpr (MOMENTS) {
        settle<T, BN, PIECES, PIECE>(sums, bias, item.column, s.outputs);
        tally.add(sums);
      }
      const auto biased = [](float x, float more) { return MOMENTS ? x : x + more; };
      const int place = (threadIdx.x % 128 / 32 * 16 + lane / 4) * CHUNK, turn = lane / 4 * 16;
      const auto put = [&](char* panel, int j, const float* sum) {  // outputs 8 j of a piece
        const int n = 8 * j + lane % 4 * 2, byte = n * sizeof(T) % CHUNK;
        float more[2] = {};
        if (!MOMENTS && bias != nullptr) {
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            if (item.column + n + v < s.outputs) more[v] = widen(bias[item.column + n + v]);
          }
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          Pack<T, 2> pair;
#pragma unroll
          for (int v = 0; v < 2; ++v) pair[v] = narrow<T>(biased(sum[2 * h + v], more[v]));
          store(reinterpret_cast<T*>(panel + place + h * 8 * CHUNK + (byte ^ turn)), pair);
        }
      };
      const auto write = [&](const char* from, const Place& piece, int panel) {
        const int column = item.column + panel * LANES;
        if (column < s.outputs) {
          store_box(y.map[item.part], from, column, item.tile[0] + piece.at[0],
                    item.tile[1] + piece.at[1], item.tile[2] + piece.at[2]);
        }
      };
      if (alone) named_barrier(1, CONSUMERS);  // the stages are read
      if constexpr (TURNED) {
        constexpr int BOX = PANEL / CHUNK / PANELS;  // pixels of a slot
        const int output = threadIdx.x % 128 / 32 * 16 + lane / 4;
        float more[2] = {};
        if (!MOMENTS && bias != nullptr) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const int n = item.column + output + 8 * h;
            if (n < s.outputs) more[h] = widen(bias[n]);
          }
        }
#pragma unroll
        for (int box = 0; box < PIECES * PIECE / BOX; ++box) {
          char* const to = staging + (group * SLOTS + slot.stage) * PANEL;
          slot.next(SLOTS);
          if (speaks) wait_stores<SLOTS - 1>();
          named_barrier(2 + group, 128);
          const float* const sum = sums[box * BOX / PIECE] + box * BOX % PIECE / 2;
          if constexpr (sizeof(T) == 2) {
            const int pixel = lane / 16 * 8 + lane % 8, n = output / 16 * 16 + lane / 8 % 2 * 8;
            char* const column = to + pixel * CHUNK + (n * 2 ^ lane % 8 * 16);
#pragma unroll
            for (int j = 0; j < BOX / 8; j += 2) {
              uint32_t r[4];
#pragma unroll
              for (int i = 0; i < 4; ++i) {
                const float* const pair = sum + 4 * j + 2 * i;
                r[i] = pack_16<T>(biased(pair[0], more[i % 2]), biased(pair[1], more[i % 2]));
              }
              store_transposed(column + j * 8 * CHUNK, r);
            }
          } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              const int n = output + i / 2 * 8, pixel = lane % 4 * 2 + i % 2;
              char* const place = to + n / LANES * BOX * CHUNK + pixel * CHUNK +
                                  (n % LANES * 4 ^ pixel * 16);
#pragma unroll
              for (int j = 0; j < BOX / 8; ++j) {
                *reinterpret_cast<float*>(place + j * 8 * CHUNK) =
                    biased(sum[4 * j + i], more[i / 2]);
              }
            }
          }
          fence_shared();
          named_barrier(2 + group, 128);
          if (speaks) {
            Place at(p.tile, p.piece, group * PIECES + box * BOX / PIECE);
            const Place within(p.piece, p.box, box % (PIECE / BOX));
#pragma unroll
            for (int i = 0; i < 3; ++i) at.at[i] += within.at[i];
#pragma unroll
            for (int n = 0; n < PANELS; ++n) write(to + n * BOX * CHUNK, at, n);
            commit_stores();
          }
        }
      } else if constexpr (SPLIT == 1) {
#pragma unroll
        for (int i = 0; i < PIECES; ++i) {
          const Place piece(p.tile, p.piece, group * PIECES + i);
#pragma unroll
          for (int panel = 0; panel < PANELS; ++panel) {
            char* const to = staging + (group * SLOTS + slot.stage) * PANEL;
            slot.next(SLOTS);
            if (speaks) wait_stores<SLOTS - 1>();
            named_barrier(2 + group, 128);
#pragma unroll
            for (int j = panel * STRIPS; j < (panel + 1) * STRIPS; ++j) put(to, j, sums[i] + 4 * j);
            fence_shared();
            named_barrier(2 + group, 128);
            if (speaks) {
              write(to, piece, panel);
              commit_stores();
            }
          }
        }
      } else {
        constexpr int MINE = WARPGROUPS * PIECES / SPLIT;  // pieces that this block adds up
        char* const results = shared + WARPGROUPS * PIECES * 64 * BN * 4;
        Pack<float, 4>* const partial =
            reinterpret_cast<Pack<float, 4>*>(shared) + threadIdx.x % 128;
#pragma unroll
        for (int i = 0; i < PIECES; ++i) {
#pragma unroll
          for (int j = 0; j < BN / 8; ++j) {
            Pack<float, 4> four;
#pragma unroll
            for (int v = 0; v < 4; ++v) four[v] = sums[i][4 * j + v];
            partial[((group * PIECES + i) * (BN / 8) + j) * 128] = four;
          }
        }
        cluster_barrier();
        for (int i = 0; i < MINE; ++i) {  // a warpgroup half of the columns
          float sum[BN / 16][4] = {};
#pragma unroll
          for (int r = 0; r < SPLIT; ++r) {
#pragma unroll
            for (int j = 0; j < BN / 16; ++j) {
              const int n = group * (BN / 16) + j;
              add_from(sum[j], partial + ((rank * MINE + i) * (BN / 8) + n) * 128, r);
            }
          }
#pragma unroll
          for (int j = 0; j < BN / 16; ++j) {
            const int n = group * (BN / 16) + j;
            put(results + (i * PANELS + n / STRIPS) * PANEL, n, sum[j]);
          }
        }
        fence_shared();
        named_barrier(1, CONSUMERS);
        if (threadIdx.x == 0) {
          for (int i = 0; i < MINE; ++i) {
            const Place piece(p.tile, p.piece, rank * MINE + i);
            for (int n = 0; n < PANELS; ++n) write(results + (i * PANELS + n) * PANEL, piece, n);
          }
          commit_stores();
        }
        __syncwarp();
        cluster_barrier();  // the others have read what lies here
      }
    }
    if constexpr (MOMENTS) {
      const int blocks = gridDim.x / s.columns, column = blockIdx.x % s.columns * BN;
      tally.write(moments, blocks, s.outputs, blockIdx.x / s.columns, column);
    }
    if (speaks) wait_stores<0>();
  }
}
