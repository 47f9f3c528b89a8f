// The weight's gradient of a convolution by 3x3 on Hopper's products of warpgroups.
//
// Op:          conv_backward_weight
// Math:        gw[o, c, k] = sum over images n, pixels p of g[n, o, p] x[n, c, p s - pad + k]: for
//              each tap a product over the pixels. A run is 8 neighbours of a column of the output,
//              or of small images a pixel of 8 images; x's tile has its margin, so all taps read
//              one tile, each from another row on
// Layout:      g and x by pixels (NHWC), channels padded to 16 bytes, by tensor maps
// Launch:      grid (output tiles * channel tiles, splits of the stages), block 128 (TAPS + 1): a
//              warpgroup for each row of taps, and one of which a warp copies and, of tf32, three
//              turn g. Shared: stages * (4096 sizeof(T) + boxes of x's tile, each up to a multiple
//              of 1024)
// Cost:        2 n p o c TAPS^2 FLOPs, on tensor cores. Of L2, g once for every 64 channels, and x
//              (of 8 by 8 outputs those of 10 by 10) for every 64 outputs. Of 3x3 shared memory is
//              busy for 90 % (16-bit types 75 %) of the time of the products; those of stride 2 are
//              bound by L2, those of 1x1 by memory
// Types:       float -> float (rounded to tf32 by the copy engine), half, bfloat16 -> float
// Determinism: bit for bit: fixed order; conv2d_weight_reduce sums the splits in order
// Limits:      3x3 of stride 1 or 2, 1x1 of stride 2 without padding, no dilation, no groups, 33
//              channels and outputs or more. A NaN or infinity in x may reach taps that do not
//              meet it
// Variants:    16-bit types: both operands MN-major from shared memory, a row of taps is a product
//              of 192 columns. tf32 takes K-major ones only: x is read into registers, once for
//              three taps (the same column of x meets three columns of g), and g is turned where it
//              lies, once for nine. tf32 leaves out what is padding, columns of x, and of small
//              images pieces of a stage: 115 -> 99 us for 512 channels of 4x4, else 1 to 2 % slower
//              Slower, 512 images: tiles by cp.async, with x turned for each row of taps (223 us
//              where this takes 113); pairs of blocks that share x by multicast (112 -> 143 us,
//              bfloat16 59 -> 79); 16-bit types that leave padding out (4x4 59 -> 55, but of stride
//              2 38 -> 43)
// Instances:   conv2d_weight_warpgroups<float,3,1>: 128 registers, 1024 bytes shared
//   conv2d_weight_warpgroups<float,3,2>: 128 registers, 1024 bytes shared
//   conv2d_weight_warpgroups<__half,3,1>: 128 registers, 1024 bytes shared
//   conv2d_weight_warpgroups<__half,3,2>: 128 registers, 1024 bytes shared
//   conv2d_weight_warpgroups<__nv_bfloat16,3,1>: 128 registers, 1024 bytes shared
//   conv2d_weight_warpgroups<__nv_bfloat16,3,2>: 128 registers, 1024 bytes shared
//   conv2d_weight_warpgroups<float,1,1>: 128 registers, 1024 bytes shared
//   conv2d_weight_warpgroups<__nv_bfloat16,1,1>: 128 registers, 1024 bytes shared
// Source:      Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014; PTX ISA,
//              matrices of wgmma in shared memory
// Measured:    NVIDIA H200, with the reduction (4 to 8 us), 512 images, 2026-11-23: tf32, 64
//              channels of 32x32 115 us (335 TFLOP/s), 128 of 16x16 112, 256 of 8x8 108, 512 of 4x4
//              99; of stride 2, 64 to 128 channels of 32x32 80, 128 to 256 77, 256 to 512 80; by
//              1x1 36, 30, 25; bfloat16 59 (656 TFLOP/s), 58, 57, 59; 43, 37, 38; 24, 15, 13. 128
//              images: tf32 40, 40, 38, 37; bfloat16 27, 25, 25, 28

#include "common.cuh"
#include "mma.cuh"
#include "wgmma.cuh"

// ---------------------------------------------------------------------------- device helpers

constexpr int MOST_TAPS = 3;  // of the kernel, down and across
template <int TAPS>
constexpr int THREADS = 128 * (TAPS + 1);  // a warpgroup for each row of taps, and another
template <int TAPS>
constexpr int RESIDENT = TAPS == 1 ? 2 : 1;  // blocks of a multiprocessor
constexpr int COPYING = 3;             // the last warpgroup's warp that copies
constexpr int TURNING = 32 * COPYING;  // threads that turn g
constexpr int TILE = 64;               // outputs and channels of a block
constexpr int ROW = 128;               // bytes of a row in shared memory: channels of a pixel
constexpr int RUNS = 8, COLUMNS = 4;   // of a piece of the output
constexpr int PIECES = 2;              // of a stage
constexpr int PIECE = RUNS * COLUMNS * ROW;  // bytes of a panel
constexpr int MOST_STAGES = 8;

// A stage is two pieces of the output, RUNS by COLUMNS pixels, and the tile of x that they meet.
// Of g, a piece's panels (of 128 bytes of outputs) follow each other as [column][run][128 bytes];
// of x, the tile's boxes (by halves of the rows, if of stride 2, and panels of channels) as
// [column][row][128 bytes]. All is swizzled by 128 bytes.
struct Problem {
  int steps;             // stages of the whole sum
  int across, down;      // stages of an image, or of 8 of them
  int by_images;         // runs are images, the second piece is below the first, not beside it
  int outputs, padded;   // padded: channels
  int out_height, out_width, height, width;
  int padding_height, padding_width;
  int box;               // bytes of x's boxes
  int box_used;          // without what fills them up
  int boxes, stage, stages;
  int column, piece;     // bytes to the next column of x's tile, to the second piece's first row
  int tap[MOST_TAPS];    // bytes to what a row of taps meets
};

// A stage's place in the images.
struct Place {
  int across, down, images;
  __device__ __forceinline__ Place(const Problem& s, int step)
      : across(step % s.across), down(step / s.across % s.down), images(step / s.across / s.down) {}
  __device__ __forceinline__ void next(const Problem& s) {
    if (++across < s.across) return;
    across = 0;
    if (++down == s.down) down = 0, ++images;
  }
};

// The pieces of a stage that are not all zeros for a row of taps, as bits; one at least.
template <int STRIDE>
__device__ __forceinline__ int useful(const Problem& s, const Place& place, int tap) {
  int pieces = 0;
#pragma unroll
  for (int piece = 0; piece < PIECES; ++piece) {
    bool met = (PIECES * place.across + piece) * COLUMNS < s.out_width;
    if (s.by_images) {
      const int h = PIECES * place.down + piece, row = h * STRIDE + tap - s.padding_height;
      met = h < s.out_height && static_cast<unsigned>(row) < static_cast<unsigned>(s.height);
    }
    pieces |= met << piece;
  }
  return pieces == 0 ? 1 : pieces;
}

// A place in the ring of stages, and the parity of its round.
struct Turn {
  int stage = 0, parity = 0;
  __device__ __forceinline__ void next(int stages) {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

// Where the byte at `address` lies after the swizzle.
__device__ __forceinline__ uint32_t swizzled(uint32_t address) {
  return address ^ (address >> 3 & 0x70);
}
__device__ __forceinline__ void read_pair(uint32_t& low, uint32_t& high, uint32_t address) {
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];\n"
               : "=r"(low), "=r"(high)
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ float read_one(uint32_t address) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];\n" : "=f"(x) : "r"(address) : "memory");
  return x;
}
__device__ __forceinline__ void write_four(uint32_t address, const float (&x)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(address), "f"(x[0]), "f"(x[1]),
               "f"(x[2]), "f"(x[3])
               : "memory");
}

// A warp's share of turning a piece of g in place: to rows of an output, 128 bytes of all columns'
// runs, those of even number before those of odd number.
__device__ __forceinline__ void turn(uint32_t piece) {
  constexpr int UNITS = 2 * COLUMNS * 2;  // halves of the runs, columns, panels
  constexpr int MINE = (UNITS + COPYING - 1) / COPYING;
  const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  float runs[MINE][4];
#pragma unroll
  for (int i = 0; i < MINE; ++i) {
    const int unit = min(warp + COPYING * i, UNITS - 1);
    const int odd = unit % 2, column = unit / 2 % COLUMNS, panel = unit / 2 / COLUMNS;
    const uint32_t at = piece + panel * PIECE + (column * RUNS + odd) * ROW + 4 * lane;
#pragma unroll
    for (int r = 0; r < 4; ++r) runs[i][r] = read_one(swizzled(at + 2 * r * ROW));
  }
  named_barrier(1, TURNING);
#pragma unroll
  for (int i = 0; i < MINE; ++i) {
    const int unit = warp + COPYING * i;
    const int odd = unit % 2, column = unit / 2 % COLUMNS, panel = unit / 2 / COLUMNS;
    const uint32_t at = piece + (panel * 32 + lane) * ROW + column * 32 + odd * 16;
    if (unit < UNITS) write_four(swizzled(at), runs[i]);
  }
}

// ---------------------------------------------------------------------------- kernels

// A tile is 64 outputs by 64 channels by all taps, summed over one split of the stages:
// sums[split, output, tap, channel].
template <typename T, int TAPS, int STRIDE>
__global__ void __launch_bounds__(THREADS<TAPS>, RESIDENT<TAPS>)
    conv2d_weight_warpgroups(const __grid_constant__ TensorMap g,
                             const __grid_constant__ TensorMap x,
                             const __grid_constant__ Problem s, float* __restrict__ sums) {
  constexpr bool WIDE = sizeof(T) == 4;
  constexpr int LANES = ROW / sizeof(T), PANELS = TILE / LANES;
  constexpr int G_BYTES = PIECES * PANELS * PIECE, CONSUMERS = 128 * TAPS;
  extern __shared__ __align__(1024) char shared[];
  __shared__ Barrier full[MOST_STAGES], turned[MOST_STAGES], free[MOST_STAGES];

  const int tiles_down = (s.outputs + TILE - 1) / TILE;
  const int o0 = blockIdx.x % tiles_down * TILE, c0 = blockIdx.x / tiles_down * TILE;
  const int begin = static_cast<int64_t>(s.steps) * blockIdx.y / gridDim.y;
  const int steps = static_cast<int64_t>(s.steps) * (blockIdx.y + 1) / gridDim.y - begin;

  if (threadIdx.x < MOST_STAGES) {
    make_barrier(full + threadIdx.x, 1);
    make_barrier(turned + threadIdx.x, TURNING);
    make_barrier(free + threadIdx.x, CONSUMERS / 32);
    fence_barriers();
  }
  __syncthreads();

  const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);  // the warpgroup
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x % 128 / 32, 0), lane = threadIdx.x % 32;
  Turn at;
  if (group == TAPS) {
    if constexpr (TAPS > 1) give_registers<56>();
    if (warp == COPYING && lane == 0) {
      at.parity = 1;  // what is free at first
      Place place(s, begin);
      for (int step = 0; step < steps; ++step) {
        wait(free + at.stage, at.parity);
        char* to = shared + at.stage * s.stage;
        arrive_expecting(full + at.stage, G_BYTES + s.boxes * s.box_used);
        const int w = place.across * (s.by_images ? COLUMNS : PIECES * COLUMNS);
        const int h = place.down * (s.by_images ? PIECES : RUNS);
        const int n = place.images * (s.by_images ? RUNS : 1);
#pragma unroll
        for (int i = 0; i < PIECES * PANELS; ++i) {
          const int piece = i / PANELS, o = o0 + i % PANELS * LANES;
          if (s.by_images) {
            load_box(to, g, full + at.stage, o, n, h + piece, w);
          } else {
            load_box(to, g, full + at.stage, o, h, w + piece * COLUMNS, n);
          }
          to += PIECE;
        }
        const int left = w * STRIDE - s.padding_width, top = h * STRIDE - s.padding_height;
        for (int i = 0; i < s.boxes; ++i) {
          const int c = c0 + i % PANELS * LANES, half = i / PANELS;
          if (s.by_images) {
            load_box(to, x, full + at.stage, c, n, top, left);
          } else {
            load_box(to, x, full + at.stage, c, top + half, left, n);
          }
          to += s.box;
        }
        at.next(s.stages);
        place.next(s);
      }
    } else if (WIDE && warp != COPYING) {
      for (int step = 0; step < steps; ++step) {
        wait(full + at.stage, at.parity);
        const uint32_t from = shared_address(shared + at.stage * s.stage);
#pragma unroll
        for (int piece = 0; piece < PIECES; ++piece) turn(from + piece * PANELS * PIECE);
        fence_shared();
        arrive(turned + at.stage);
        at.next(s.stages);
      }
    }
    return;
  }

  if constexpr (TAPS > 1) take_registers<152>();
  const int t = lane % 4;
  sums += static_cast<int64_t>(blockIdx.y) * s.outputs * (TAPS * TAPS * s.padded) +
          group * TAPS * s.padded;
  if constexpr (WIDE) {
    // The products' rows are channels, neighbours are rows that differ by 8; their columns outputs.
    constexpr int MET = COLUMNS * STRIDE + TAPS - STRIDE;  // columns of x, by CHUNKS, a piece
    constexpr int CHUNKS = 2 * STRIDE, MOST = (MET + CHUNKS - 1) / CHUNKS;
    const uint32_t lanes = shared_address(shared) + G_BYTES + s.tap[group] + warp / 2 * s.box +
                           warp % 2 * 64 + 2 * t * ROW + lane / 4 * 8;
    const auto read = [&](uint32_t(&a)[MOST][4], uint32_t from, int chunk) {
      const int first = MET * chunk / CHUNKS;
#pragma unroll
      for (int i = first; i < MET * (chunk + 1) / CHUNKS; ++i) {
        const uint32_t place = from + i * s.column;
        read_pair(a[i - first][0], a[i - first][1], swizzled(place));
        read_pair(a[i - first][2], a[i - first][3], swizzled(place + ROW));
      }
    };
    Place place(s, begin);
    float d[TAPS][TILE / 2] = {};
    uint32_t a[2][MOST][4];
    uint32_t from = lanes;  // the piece's first column of x
    int pieces = useful<STRIDE>(s, place, group), left = steps;  // of this stage; stages
    if (left > 0) {
      wait(full, 0);
      if (!(pieces & 1)) from += s.piece;
      read(a[0], from, 0);
    }
#pragma unroll 1
    while (left > 0) {
      const int stage = at.stage, piece = pieces & 1 ? 0 : 1;
      pieces &= pieces - 1;
      wait(turned + stage, at.parity);
      const uint64_t b = k_major(shared + stage * s.stage + piece * PANELS * PIECE);
      const int beside = s.by_images ? place.across : PIECES * place.across + piece;
      const int leftmost = beside * COLUMNS * STRIDE - s.padding_width;
      const bool ends[2] = {leftmost >= 0, leftmost + MET - 1 < s.width};  // not in the padding
#pragma unroll
      for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        constexpr auto first = [](int n) { return MET * n / CHUNKS; };
        const auto multiply = [&](int i) {  // a column of x
#pragma unroll
          for (int tap = 0; tap < TAPS; ++tap) {
            const int column = i - tap;  // of g, times the stride
            if (column < 0 || column % STRIDE != 0 || column >= COLUMNS * STRIDE) continue;
            wgmma<T>(d[tap], a[chunk % 2][i - first(chunk)], advance(b, column / STRIDE * 32),
                     true);
          }
        };
#pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) hold(d[tap]);
        if ((chunk == 0 && ends[0]) || (chunk == CHUNKS - 1 && ends[1])) {
          wgmma_fence();
          multiply(chunk == 0 ? 0 : MET - 1);
          wgmma_commit();
        }
        wgmma_fence();
#pragma unroll
        for (int i = max(1, first(chunk)); i < min(MET - 1, first(chunk + 1)); ++i) multiply(i);
        wgmma_commit();
        wgmma_wait<1>();
        if (chunk + 1 < CHUNKS) read(a[(chunk + 1) % 2], from, chunk + 1);
      }
      // The next piece's first columns are read while the last products run.
      const bool last = pieces == 0;
      if (last) {
        at.next(s.stages), place.next(s), --left;
        pieces = useful<STRIDE>(s, place, group);
      }
      if (left > 0) {
        if (last) wait(full + at.stage, at.parity);
        from = lanes + at.stage * s.stage + (pieces & 1 ? 0 : s.piece);
        read(a[0], from, 0);
      }
      wgmma_wait<0>();
#pragma unroll
      for (int tap = 0; tap < TAPS; ++tap) hold(d[tap]);
      if (last && lane == 0) arrive(free + stage);
    }
    const int channel = c0 + warp * 16 + lane / 4 * 2;
    if (channel >= s.padded) return;
#pragma unroll
    for (int tap = 0; tap < TAPS; ++tap) {
#pragma unroll
      for (int j = 0; j < TILE / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int o = o0 + 8 * j + 2 * t + i;
          const Pack<float, 2> pair = {d[tap][4 * j + i], d[tap][4 * j + 2 + i]};
          if (o < s.outputs) {
            store(sums + static_cast<int64_t>(o) * (TAPS * TAPS * s.padded) + tap * s.padded +
                      channel, pair);
          }
        }
      }
    }
  } else {
    // The products' rows are outputs, their columns channels, the row's taps side by side.
    float d[TAPS * TILE / 2] = {};
    int before = -1;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      wait(full + at.stage, at.parity);
      char* const from = shared + at.stage * s.stage;
      const uint64_t a = mn_major(from, PIECE);
      const uint64_t b =
          make_descriptor(from + G_BYTES + s.tap[group], s.column, STRIDE * s.column);
      wgmma_fence();
#pragma unroll
      for (int piece = 0; piece < PIECES; ++piece) {
#pragma unroll
        for (int column = 0; column < COLUMNS; column += 2) {
          wgmma<T, true, true>(d, advance(a, piece * PIECE + column * RUNS * ROW),
                               advance(b, piece * s.piece + column * STRIDE * s.column), true);
        }
      }
      wgmma_commit();
      wgmma_wait<1>();
      if (lane == 0 && before >= 0) arrive(free + before);
      before = at.stage;
      at.next(s.stages);
    }
    wgmma_wait<0>();
    hold(d);
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
      const int o = o0 + warp * 16 + lane / 4 + lower * 8;
      if (o >= s.outputs) continue;
      float* to = sums + static_cast<int64_t>(o) * (TAPS * TAPS * s.padded);
#pragma unroll
      for (int j = 0; j < TAPS * TILE / 8; ++j) {
        const int tap = j / (TILE / 8), channel = c0 + j % (TILE / 8) * 8 + 2 * t;
        const Pack<float, 2> pair = {d[4 * j + 2 * lower], d[4 * j + 2 * lower + 1]};
        if (channel < s.padded) store(to + tap * s.padded + channel, pair);
      }
    }
  }
}
