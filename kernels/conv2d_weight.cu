// The weight's gradient of a convolution by 3x3, all nine taps from one reading of the pixels.
//
// Op:          conv_backward_weight
// Math:        gw[o, c, k] = sum over images n, pixels p of g[n, o, p] x[n, c, p s - pad + k]: for
//              each tap a product over the pixels, 8 (tf32) or 16 of them a step. A step's pixels
//              are of as many rows of the output, one column of it; the next step is the next
//              column. So what one tap reads of x the next tap needs a column later, and finds in
//              registers; and a tile of x in shared memory serves all nine
// Layout:      g and x by pixels (NHWC), channels padded to 16 bytes, as in conv2d.cu
// Launch:      grid (output tiles * channel tiles, splits of the rows), block 96 WO WC, shared
//              STAGES (4, or 3 of stride 2) of COLUMNS RUNS (BO sizeof(T) + PAD) +
//              (COLUMNS STRIDE + 3 - STRIDE) slots (BC sizeof(T) + PAD), RUNS = 32 / sizeof(T),
//              PAD = 32 (tf32) or 16
// Cost:        18 n p o c FLOPs, on tensor cores. Of L2, g once for every BC channels, and x 10 / 8
//              times (images of 8 rows and more) for every BO outputs. Shared memory: a warp reads
//              32 + 32 values of a pixel for 3072 multiply-adds, half the time the products take
// Types:       float -> float (rounded to tf32), half, bfloat16 -> float
// Determinism: bit for bit: fixed order; conv2d_weight_reduce sums the splits in order
// Limits:      kernels of 3x3, stride 1 or 2, no dilation, no groups, 16 channels and outputs or
//              more, images whose sets of rows meet 48 rows of x or fewer. A NaN or infinity in x
//              may reach taps that do not meet it
// Variants:    tiles of 64x64, 32x32 and 16x16, by the least waste; where conv2d_weight_sm90.cu
//              serves, that. Stages of 8 columns gained 3 % (64 channels of 32x32): not worth one.
//              The reduction of 512 x 512 channels took 37 us, not 8, where a thread wrote one tap
// Instances:   conv2d_weight<float,64,64,2,2,4,1>: 168 registers, 768 bytes shared
//   conv2d_weight<float,64,64,2,2,4,2>: 168 registers, 768 bytes shared
//   conv2d_weight<float,32,32,1,1,4,1>: 168 registers, 768 bytes shared
//   conv2d_weight<float,32,32,1,1,4,2>: 168 registers, 768 bytes shared
//   conv2d_weight<float,16,16,1,1,4,1>: 168 registers, 768 bytes shared
//   conv2d_weight<__nv_bfloat16,64,64,2,2,4,1>: 168 registers, 768 bytes shared
//   conv2d_weight<__nv_bfloat16,32,32,1,1,4,2>: 168 registers, 768 bytes shared
//   conv2d_weight<__half,64,64,2,2,4,2>: 168 registers, 768 bytes shared
//   conv2d_weight<__half,16,16,1,1,4,1>: 168 registers, 768 bytes shared
//   conv2d_weight_reduce<float,9,1>: 64 registers, 4608 bytes shared
//   conv2d_weight_reduce<float,1,1>: 64 registers, 512 bytes shared
//   conv2d_weight_reduce<__half,9,8>: 64 registers, 4608 bytes shared
// Source:      Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014
// Measured:    NVIDIA H200, with the reduction, 128 images, 2026-11-23: tf32, 64 channels of 32x32
//              72 us (134 TFLOP/s; cuDNN 109 us), 512 of 4x4 93, 16 of 32x32 14 (cuDNN 56), 32 of
//              16x16 13 (40), 64 to 128 of 32x32 with stride 2 57 (53); bfloat16 38 of 64 channels
//              (cuDNN 36), 10 of 16 (35)

#include "common.cuh"
#include "mma.cuh"
#include "divisor.cuh"

// ---------------------------------------------------------------------------- device helpers

constexpr int TAPS = 3;         // of the kernel, down and across
constexpr int MOST_SLOTS = 48;  // rows of x that a set of output rows meets

// A tile of the gradient, BO outputs by BC channels by all taps, by WO x WC warps for each of the
// kernel's rows. A stage is COLUMNS columns of RUNS output rows, and the columns of x they meet.
template <typename T, int BO, int BC, int WO, int WC, int COLUMNS, int STRIDE>
struct Shape {
  static constexpr int RUNS = 32 / sizeof(T);  // what a product sums over
  static constexpr int STAGES = STRIDE == 1 ? 4 : 3;
  static constexpr int THREADS = 32 * TAPS * WO * WC, RESIDENT = 384 / THREADS;
  static constexpr int VEC = 16 / sizeof(T), G_PACKS = BO / VEC, X_PACKS = BC / VEC;
  static constexpr int OUTPUTS = BO / WO, CHANNELS = BC / WC;  // of a warp
  static constexpr int FO = OUTPUTS / 16, FC = CHANNELS / 8;   // its fragments
  // Bytes from one pixel to the next in shared memory: reads of neighbouring rows do not collide.
  static constexpr int PAD = sizeof(T) == 4 ? 32 : 16;
  static constexpr int G_PITCH = 16 * G_PACKS + PAD, X_PITCH = 16 * X_PACKS + PAD;
  static constexpr int KEPT = TAPS - STRIDE;      // columns of x that the next ones still need
  static constexpr int FRESH = COLUMNS * STRIDE;  // columns of x that a stage adds
  static constexpr int G_BYTES = COLUMNS * RUNS * G_PITCH;
  static_assert(FO * 16 * WO == BO && FC * 8 * WC == BC && FC % 2 == 0, "whole fragments");
  static_assert(THREADS % G_PACKS == 0 && THREADS % X_PACKS == 0, "whole pixels");
  static_assert(STRIDE == 1 || STRIDE == 2, "windows that overlap");
};

// The rows of output are numbered through all images, RUNS of them are a set. The rows of x that a
// set meets lie in slots: an image's rows with its padding, then the next image's, `virtual_height`
// of them each, a multiple of the stride; those that differ by the stride lie side by side.
struct Rows {
  int64_t image;             // elements from one to the next in x
  int rows, sets, split;     // of all images; sets of one split
  int outputs, g_pitch, g_packs, out_width, batch, height, width, pitch, packs;
  int padding_height, padding_width;
  int slots, stage, stages;  // stage: its bytes; stages: of a set
  Divisor by_out_height, by_virtual_height;
};

// How the operands of a product lie in a warp's lanes, and are read from a column in shared memory.
template <typename T>
struct Operand;

template <>
struct Operand<float> {
  static constexpr int PARTS = 2;  // runs a lane reads: its own and the fourth after it
  static __device__ __forceinline__ int run(int part, bool) { return threadIdx.x % 4 + 4 * part; }
  static __device__ __forceinline__ int byte(bool first) {
    return threadIdx.x % 32 / 4 * (first ? 8 : 4);
  }
  static __device__ __forceinline__ int output(int lower) {
    return threadIdx.x % 32 / 4 * 2 + lower;  // two neighbours are read at once
  }
  template <int N>
  static __device__ __forceinline__ void read_a(uint32_t (&a)[N][4], const char* from,
                                                const int (&places)[PARTS]) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
        const Pack<float, 2> pair =
            load<2>(reinterpret_cast<const float*>(from + places[part] + 64 * i));
        a[i][2 * part] = to_tf32(pair[0]), a[i][2 * part + 1] = to_tf32(pair[1]);
      }
    }
  }
  template <int N>
  static __device__ __forceinline__ void read_b(uint32_t (&b)[N][2], const char* from,
                                                const int (&places)[PARTS]) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
        b[j][part] = to_tf32(*reinterpret_cast<const float*>(from + places[part] + 32 * j));
      }
    }
  }
  static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4],
                                                  const uint32_t (&b)[2]) {
    mma_tf32(c, a, b);
  }
};

template <typename T>
struct Operand {
  static constexpr int PARTS = 1;
  static __device__ __forceinline__ int run(int, bool first) {
    const int lane = threadIdx.x % 32;
    return lane % 8 + (first ? lane / 16 : lane / 8 % 2) * 8;
  }
  static __device__ __forceinline__ int byte(bool first) {
    const int lane = threadIdx.x % 32;
    return (first ? lane / 8 % 2 : lane / 16) * 16;
  }
  static __device__ __forceinline__ int output(int lower) {
    return threadIdx.x % 32 / 4 + 8 * lower;
  }
  template <int N>
  static __device__ __forceinline__ void read_a(uint32_t (&a)[N][4], const char* from,
                                                const int (&places)[PARTS]) {
#pragma unroll
    for (int i = 0; i < N; ++i) ldmatrix_transposed(a[i], from + places[0] + 32 * i);
  }
  template <int N>
  static __device__ __forceinline__ void read_b(uint32_t (&b)[N][2], const char* from,
                                                const int (&places)[PARTS]) {
#pragma unroll
    for (int j = 0; j < N; j += 2) {
      uint32_t r[4];
      ldmatrix_transposed(r, from + places[0] + 16 * j);
      b[j][0] = r[0], b[j][1] = r[1], b[j + 1][0] = r[2], b[j + 1][1] = r[3];
    }
  }
  static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4],
                                                  const uint32_t (&b)[2]) {
    mma_16<T>(c, a, b);
  }
};

// ---------------------------------------------------------------------------- kernels

// A tile is BO outputs by BC channels by all taps, summed over one split of the sets of rows:
// sums[split, output, tap, channel].
template <typename T, int BO, int BC, int WO, int WC, int COLUMNS, int STRIDE>
__global__ void __launch_bounds__(Shape<T, BO, BC, WO, WC, COLUMNS, STRIDE>::THREADS,
                                  Shape<T, BO, BC, WO, WC, COLUMNS, STRIDE>::RESIDENT)
    conv2d_weight(const T* __restrict__ g, const T* __restrict__ x, const Rows s,
                  float* __restrict__ sums) {
  typedef Shape<T, BO, BC, WO, WC, COLUMNS, STRIDE> S;
  typedef Operand<T> Lane;
  constexpr int RUNS = S::RUNS, STAGES = S::STAGES, KEPT = S::KEPT, VEC = S::VEC;
  extern __shared__ __align__(16) char tiles[];
  __shared__ int64_t places[2][MOST_SLOTS];  // of this set's and the next one's rows

  const int tiles_down = (s.outputs + BO - 1) / BO;
  const int o0 = blockIdx.x % tiles_down * BO, c0 = blockIdx.x / tiles_down * BC;
  const int begin = blockIdx.y * s.split, end = min(begin + s.split, s.sets);

  const int g_pack = threadIdx.x % S::G_PACKS, x_pack = threadIdx.x % S::X_PACKS;
  const bool g_live = o0 / VEC + g_pack < s.g_packs, x_live = c0 / VEC + x_pack < s.packs;
  const T* g_from = g + (o0 + g_pack * VEC);
  const T* x_from = x + (c0 + x_pack * VEC);
  int next_set = begin, next_stage = 0;
  // Where the slots' rows lie in x, from the block's first channel; negative: zeros.
  const auto place_rows = [&]() {
    const int n0 = s.by_out_height.of(next_set * RUNS);
    const int first = (next_set * RUNS - n0 * static_cast<int>(s.by_out_height.value)) * STRIDE;
    for (int slot = threadIdx.x; slot < s.slots; slot += S::THREADS) {
      const int odd = STRIDE == 2 && slot >= s.slots / 2;
      const int row = first + (STRIDE == 2 ? 2 * slot - odd * (s.slots - 1) : slot);
      const int image = s.by_virtual_height.of(row);
      const int h = row - image * static_cast<int>(s.by_virtual_height.value) - s.padding_height;
      const bool inside =
          n0 + image < s.batch && static_cast<unsigned>(h) < static_cast<unsigned>(s.height);
      const int64_t offset = static_cast<int64_t>(h) * s.width * s.pitch;
      places[next_set % 2][slot] = inside ? (n0 + image) * s.image + offset : -1;
    }
  };
  const auto fetch = [&](char* tile) {  // the next stage
    constexpr int G_LANES = S::THREADS / S::G_PACKS, X_LANES = S::THREADS / S::X_PACKS;
    const int64_t first_pixel =
        static_cast<int64_t>(next_set * RUNS) * s.out_width + next_stage * COLUMNS;
    const T* from = g_from + first_pixel * s.g_pitch;
    const int runs = s.rows - next_set * RUNS, columns = s.out_width - next_stage * COLUMNS;
#pragma unroll
    for (int first = 0; first < COLUMNS * RUNS; first += G_LANES) {
      const int i = first + threadIdx.x / S::G_PACKS;
      if (COLUMNS * RUNS % G_LANES != 0 && i >= COLUMNS * RUNS) break;
      const int column = i % COLUMNS, run = i / COLUMNS;
      const bool inside = g_live && run < runs && column < columns;
      const int pixel = run * s.out_width + column;
      cp_async<16>(tile + (column * RUNS + run) * S::G_PITCH + g_pack * 16,
                   inside ? from + static_cast<int64_t>(pixel) * s.g_pitch : g, inside);
    }
    char* to = tile + S::G_BYTES + x_pack * 16;
    const auto copy = [&](int column, int slot) {
      const int v = next_stage * S::FRESH + column - s.padding_width;
      const int64_t row = places[next_set % 2][slot];
      const bool inside =
          x_live && row >= 0 && static_cast<unsigned>(v) < static_cast<unsigned>(s.width);
      cp_async<16>(to + (column * s.slots + slot) * S::X_PITCH,
                   inside ? x_from + (row + static_cast<int64_t>(v) * s.pitch) : x, inside);
    };
#pragma unroll 1
    for (int i = threadIdx.x / S::X_PACKS; i < S::FRESH * s.slots; i += X_LANES) {
      copy(KEPT + i % S::FRESH, i / S::FRESH);
    }
    if (next_stage == 0) {
#pragma unroll 1
      for (int i = threadIdx.x / S::X_PACKS; i < KEPT * s.slots; i += X_LANES) {
        copy(i % KEPT, i / KEPT);
      }
    }
    if (++next_stage == s.stages) {
      next_stage = 0, ++next_set;
      place_rows();
    }
  };

  const int warp = threadIdx.x / 32, kh = warp / (WO * WC);
  const int wo = warp / WC % WO * S::OUTPUTS, wc = warp % WC * S::CHANNELS;
  int g_places[Lane::PARTS], x_places[Lane::PARTS];
#pragma unroll
  for (int part = 0; part < Lane::PARTS; ++part) {
    g_places[part] = Lane::run(part, true) * S::G_PITCH + Lane::byte(true) +
                     wo * static_cast<int>(sizeof(T));
  }
  const int column_pitch = s.slots * S::X_PITCH;
  float c[TAPS][S::FO][S::FC][4] = {};
  uint32_t b[TAPS][S::FC][2];  // the columns of x that the taps meet

  const int steps = (end - begin) * s.stages;
  place_rows();
#pragma unroll 1
  for (int stage = 0; stage < STAGES - 1; ++stage) {
    __syncthreads();  // the slots' rows are known
    if (stage < steps) fetch(tiles + stage * s.stage);
    cp_async_commit();
  }
  int read = 0, write = STAGES - 1, set = begin, stage = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();  // this stage is there for all, and all are done with the one before
    if (step + STAGES - 1 < steps) fetch(tiles + write * s.stage);
    cp_async_commit();
    const char* from_g = tiles + read * s.stage;
    const char* from_x = from_g + S::G_BYTES;
    if (stage == 0) {  // of a new set
      const int n0 = s.by_out_height.of(set * RUNS);
      const int gap = static_cast<int>(s.by_virtual_height.value) / STRIDE -
                      static_cast<int>(s.by_out_height.value);
#pragma unroll
      for (int part = 0; part < Lane::PARTS; ++part) {
        const int run = Lane::run(part, false), n = s.by_out_height.of(set * RUNS + run);
        const int slot = run + (n - n0) * gap + kh / STRIDE + kh % STRIDE * (s.slots / 2);
        x_places[part] =
            slot * S::X_PITCH + Lane::byte(false) + wc * static_cast<int>(sizeof(T));
      }
#pragma unroll
      for (int i = 0; i < KEPT; ++i) Lane::read_b(b[i], from_x + i * column_pitch, x_places);
      ++set;
    }
#pragma unroll(STRIDE == 1 ? COLUMNS : 2)
    for (int column = 0; column < COLUMNS; ++column) {
      uint32_t a[S::FO][4];
      Lane::read_a(a, from_g + column * RUNS * S::G_PITCH, g_places);
#pragma unroll
      for (int i = KEPT; i < TAPS; ++i) {
        Lane::read_b(b[i], from_x + (column * STRIDE + i) * column_pitch, x_places);
      }
#pragma unroll
      for (int tap = 0; tap < TAPS; ++tap) {
#pragma unroll
        for (int i = 0; i < S::FO; ++i) {
#pragma unroll
          for (int j = 0; j < S::FC; ++j) Lane::multiply(c[tap][i][j], a[i], b[tap][j]);
        }
      }
#pragma unroll
      for (int i = 0; i < KEPT; ++i) {
#pragma unroll
        for (int j = 0; j < S::FC; ++j) {
          b[i][j][0] = b[i + STRIDE][j][0], b[i][j][1] = b[i + STRIDE][j][1];
        }
      }
    }
    if (++stage == s.stages) stage = 0;
    read = read + 1 == STAGES ? 0 : read + 1;
    write = write + 1 == STAGES ? 0 : write + 1;
  }

  const int padded = s.packs * VEC;
  sums += static_cast<int64_t>(blockIdx.y) * s.outputs * (TAPS * TAPS * padded);
#pragma unroll
  for (int i = 0; i < S::FO; ++i) {
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
      const int o = o0 + wo + 16 * i + Lane::output(lower);
      if (o >= s.outputs) continue;
      float* to = sums + (static_cast<int64_t>(o) * TAPS * TAPS + kh * TAPS) * padded;
#pragma unroll
      for (int tap = 0; tap < TAPS; ++tap) {
#pragma unroll
        for (int j = 0; j < S::FC; ++j) {
          const int channel = c0 + wc + 8 * j + threadIdx.x % 4 * 2;
          const Pack<float, 2> pair = {c[tap][i][j][2 * lower], c[tap][i][j][2 * lower + 1]};
          if (channel < padded) store(to + tap * padded + channel, pair);
        }
      }
    }
  }
}

// gw[output, channel, tap] = the sum over splits of sums[split, output, tap, channel]. A block has
// all KERNEL taps of 128 / PARTS channels of an output, which lie together in gw too, and PARTS
// threads for every four of them; `last`: gw lies as [output, tap, channel].
template <typename T, int KERNEL, int PARTS>
__global__ void __launch_bounds__(32 * KERNEL, 4)
    conv2d_weight_reduce(const float* __restrict__ sums, int splits, int64_t size, int channels,
                         int padded, bool last, T* __restrict__ gw) {
  constexpr int FOURS = 32 / PARTS, WIDTH = 4 * FOURS;
  static_assert(FOURS * PARTS == 32, "whole warps of each tap");
  __shared__ Pack<float, 4> parts[PARTS][KERNEL][FOURS];
  const int across = (padded + WIDTH - 1) / WIDTH, output = blockIdx.x / across;
  const int c0 = (blockIdx.x - output * across) * WIDTH;
  const int four = threadIdx.x % FOURS, part = threadIdx.x / FOURS / KERNEL;
  const int tap = threadIdx.x / FOURS % KERNEL;
  Pack<float, 4> sum = {};
  if (c0 + 4 * four < padded) {
    const float* from =
        sums + (static_cast<int64_t>(output) * KERNEL + tap) * padded + c0 + 4 * four;
#pragma unroll 8
    for (int k = part; k < splits; k += PARTS) {
      const Pack<float, 4> other = load<4>(from + k * size);
#pragma unroll
      for (int v = 0; v < 4; ++v) sum[v] += other[v];
    }
  }
  parts[part][tap][four] = sum;
  __syncthreads();
  gw += (static_cast<int64_t>(output) * channels + (last ? 0 : c0)) * KERNEL;
  for (int i = threadIdx.x; i < KERNEL * WIDTH; i += blockDim.x) {
    const int channel = last ? i % WIDTH : i / KERNEL, k = last ? i / WIDTH : i % KERNEL;
    if (c0 + channel >= channels) continue;
    float all = 0.0f;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) all += parts[p][k][channel / 4][channel % 4];
    gw[last ? k * channels + c0 + channel : i] = narrow<T>(all);
  }
}
