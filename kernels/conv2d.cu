// Convolutions over two spatial axes and their gradients, as matrix products that gather.
//
// Op:          conv, conv_backward_input, conv_backward_weight
// Math:        y[n, o, p] = b[o] + sum over taps k, channels c of
//              x[n, c, p s - pad + k d] w[o, c, k]
//              gx[n, c, q] = sum over k, o with p s - pad + k d = q of g[n, o, p] w[o, c, k]
//              gw[o, c, k] = sum over n, p of g[n, o, p] x[n, c, p s - pad + k d]
// Layout:      activations by pixels (NHWC), each group's channels padded to 16 bytes: read where
//              they are if a tensor lies like that, else copied by conv2d_pack. Weights: rows of
//              (tap, channel), one an output. y: any strides of image, pixel, channel; gw: dense,
//              contiguous or channels_last
// Launch:      A = sizeof(accumulator), block 32 WM WN (tensor cores) or WM WN threads.
//              forward: grid (row tiles * column tiles, groups, residues of the stride), shared
//              max(320 (BM + BN), A max(BM (BN + 8), BN (BM + 4))) + 8 BM;
//              weight: grid (tiles, groups, splits), shared max(4 * 64 / sizeof(T) * (the pitches
//              of BM and BN), A BM (BN + 8)); pack: 256 threads per 2048 elements; reduce: 256
//              threads per 256 / PARTS elements
// Cost:        2 n p o c k / groups FLOPs; x, w and y once where they stay in L2. Below some 64
//              channels bound by memory, above by the tensor cores
// Types:       float -> float (as it is, or rounded to tf32), half, bfloat16 -> float;
//              double -> double
// Determinism: bit for bit: fixed order, splits are summed in order by a second kernel
// Limits:      2^31 pixels or weights, three spatial axes, integers, half types below sm_80
// Variants:    TENSOR: tensor cores, else multiply-adds. TRANSPOSED: the input's gradient; the
//              stride's residues are convolutions of stride one, each with its own taps. Tiles by
//              fewest rounds over the multiprocessors
// Instances:   conv2d_forward<float,128,128,2,4,true,false>: 128 registers, 0 bytes shared
//   conv2d_forward<float,128,64,4,2,true,true>: 128 registers, 0 bytes shared
//   conv2d_forward<float,64,64,2,2,true,false>: 128 registers, 0 bytes shared
//   conv2d_forward<float,128,32,4,1,true,true>: 128 registers, 0 bytes shared
//   conv2d_forward<__half,128,128,2,4,true,true>: 128 registers, 0 bytes shared
//   conv2d_forward<__nv_bfloat16,64,64,2,2,true,false>: 128 registers, 0 bytes shared
//   conv2d_forward<float,128,128,16,16,false,false>: 168 registers, 0 bytes shared
//   conv2d_forward<float,128,64,16,16,false,true>: 128 registers, 0 bytes shared
//   conv2d_forward<float,64,64,16,16,false,false>: 128 registers, 0 bytes shared
//   conv2d_forward<float,128,32,16,8,false,true>: 128 registers, 0 bytes shared
//   conv2d_forward<double,64,64,16,16,false,false>: 112 registers, 0 bytes shared
//   conv2d_forward<double,64,32,16,8,false,true>: 112 registers, 0 bytes shared
//   conv2d_backward_weight<float,float,128,128,2,4,true>: 128 registers, 0 bytes shared
//   conv2d_backward_weight<float,float,64,64,2,2,true>: 128 registers, 0 bytes shared
//   conv2d_backward_weight<float,float,32,128,1,4,true>: 128 registers, 0 bytes shared
//   conv2d_backward_weight<__half,float,128,128,2,4,true>: 128 registers, 0 bytes shared
//   conv2d_backward_weight<__nv_bfloat16,float,32,128,1,4,true>: 128 registers, 0 bytes shared
//   conv2d_backward_weight<float,float,128,128,16,16,false>: 160 registers, 0 bytes shared
//   conv2d_backward_weight<float,float,64,64,16,16,false>: 128 registers, 0 bytes shared
//   conv2d_backward_weight<float,float,32,128,8,16,false>: 128 registers, 0 bytes shared
//   conv2d_backward_weight<double,double,64,64,16,16,false>: 128 registers, 0 bytes shared
//   conv2d_backward_weight<double,double,32,64,8,16,false>: 128 registers, 0 bytes shared
//   conv2d_pack<float,256,4>: 40 registers, 8704 bytes shared
//   conv2d_pack<float,64,1>: 40 registers, 8704 bytes shared
//   conv2d_pack<__nv_bfloat16,64,8>: 40 registers, 8704 bytes shared
//   conv2d_pack<__half,16,1>: 40 registers, 8704 bytes shared
//   conv2d_pack<double,16,1>: 40 registers, 17920 bytes shared
//   conv2d_backward_reduce<float,float,1>: 40 registers, 1024 bytes shared
//   conv2d_backward_reduce<__half,float,8>: 40 registers, 1024 bytes shared
//   conv2d_backward_reduce<double,double,8>: 40 registers, 2048 bytes shared
// Source:      Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014
// Measured:    NVIDIA H200, TF32, 3x3, 128x64x32x32, 2026-11-20: forward 130 us with channels last,
//              74 TFLOP/s, 0.40 of cuDNN; 168 us without, 58 TFLOP/s, 0.60 of cuDNN. conv2d_pack,
//              2026-11-23, weights 512x512x3x3 for the input's gradient: 5.5 us (9.8 without packs)

#include "common.cuh"
#include "mma.cuh"
#include "divisor.cuh"
#include "conv_product.cuh"

// ---------------------------------------------------------------------------- device helpers

// What a convolution reads and writes; offsets and pitches in elements. "Pixels" are of its input,
// the tensor that is gathered (for the input's gradient that is g), and "out" is what it makes.
struct Gather {
  int64_t image, group;                      // from one to the next in the input
  int64_t out_image, out_pixel, out_channel;  // in the output
  int batch, height, width, pitch, packs;     // pitch: of a pixel; packs: of 16 bytes, a group
  int outputs, out_height, out_width;         // output channels of a group
  int kernel_height, kernel_width, stride_height, stride_width;
  int padding_height, padding_width, dilation_height, dilation_width;
};

// Along one axis: output `place + spacing i` sums the taps `tap + tap_step j` of the input at
// `first + slope i + step j`, for i < count and j < taps.
struct Axis {
  int count, first, slope, step, taps, tap, tap_step, place, spacing;
};
template <bool TRANSPOSED>
__device__ __forceinline__ Axis make_axis(int size, int kernel, int stride, int padding,
                                          int dilation, int residue) {
  if constexpr (!TRANSPOSED) {
    return {size, -padding, stride, dilation, kernel, 0, 1, 0, 1};
  } else {
    int period = 1;  // of the taps that fall on this residue
    while (period * dilation % stride != 0) ++period;
    int tap = 0;
    while (tap < period && (residue + padding - tap * dilation) % stride != 0) ++tap;
    const int taps = tap < period && tap < kernel ? (kernel - tap + period - 1) / period : 0;
    const int first = (residue + padding - tap * dilation) / stride;
    const int count = (size - residue + stride - 1) / stride, step = -(period * dilation / stride);
    return {count, first, 1, step, taps, tap, period, residue, stride};
  }
}

struct Weights {
  int64_t image, group, g_group;
  int pixels, split, outputs, g_pitch, g_packs;  // output pixels of all images, and of one split
  int height, width, pitch, packs, kernel_height, kernel_width;
  int stride_height, stride_width, padding_height, padding_width, dilation_height, dilation_width;
  Divisor by_image, by_row;  // output pixels of an image, of a row
};

// ---------------------------------------------------------------------------- kernels

// A tile is BM output pixels by BN output channels of one group and one residue.
template <typename T, int BM, int BN, int WM, int WN, bool TENSOR, bool TRANSPOSED>
__global__ void __launch_bounds__(THREADS_OF<WM, WN, TENSOR>, RESIDENT<WM, WN, TENSOR>)
    conv2d_forward(const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ bias,
                   const Gather s, T* __restrict__ y) {
  typedef acc_t<T> A;
  constexpr int THREADS = THREADS_OF<WM, WN, TENSOR>, VEC = 16 / sizeof(T);
  constexpr int ROWS = THREADS / 4;  // rows the block copies at once
  constexpr int PASSES = BM / ROWS, WEIGHT_PASSES = BN / ROWS;
  static_assert(PASSES * ROWS == BM && WEIGHT_PASSES * ROWS == BN, "whole passes");
  constexpr int STAGE = (BM + BN) * ROW_PITCH;
  constexpr int STAGED = larger(BM * (BN + 8), BN * (BM + 4)) * static_cast<int>(sizeof(A));
  constexpr int PLACES = larger(STAGES * STAGE, STAGED);  // bytes before the rows' places
  extern __shared__ __align__(16) char tiles[];

  const int residues = s.out_width < s.stride_width ? s.out_width : s.stride_width;
  const int residue = TRANSPOSED ? blockIdx.z : 0;
  const Axis down = make_axis<TRANSPOSED>(s.out_height, s.kernel_height, s.stride_height,
                                          s.padding_height, s.dilation_height, residue / residues);
  const Axis across = make_axis<TRANSPOSED>(s.out_width, s.kernel_width, s.stride_width,
                                            s.padding_width, s.dilation_width, residue % residues);
  const int columns = (s.outputs + BN - 1) / BN;
  const int64_t m0 = static_cast<int64_t>(blockIdx.x / columns) * BM;
  const int n0 = blockIdx.x % columns * BN, group = blockIdx.y;
  const int area = down.count * across.count, positions = s.batch * area;
  if (m0 >= positions) return;

  // Where the rows are written; what the sum below does not need is done with here.
  int64_t* places = reinterpret_cast<int64_t*>(tiles + PLACES);
  for (int i = threadIdx.x; i < BM; i += THREADS) {
    const int64_t m = m0 + i;
    const int p = m < positions ? static_cast<int>(m) : 0;
    const int n = p / area, r = p - n * area, h = r / across.count, v = r - h * across.count;
    const int64_t pixel = static_cast<int64_t>(h * down.spacing + down.place) * s.out_width +
                          v * across.spacing + across.place;
    places[i] = m < positions ? n * s.out_image + pixel * s.out_pixel +
                                    static_cast<int64_t>(group) * s.outputs * s.out_channel
                              : -1;
  }

  const int pack = threadIdx.x % 4, row = threadIdx.x / 4;
  int64_t base[PASSES];
  int high[PASSES], wide[PASSES];
#pragma unroll
  for (int i = 0; i < PASSES; ++i) {
    const int64_t m = m0 + row + i * ROWS;
    const int p = m < positions ? static_cast<int>(m) : 0;
    const int n = p / area, r = p - n * area, h = r / across.count;
    base[i] = n * s.image + group * s.group;
    high[i] = m < positions ? down.first + h * down.slope : -(1 << 30);  // never inside
    wide[i] = across.first + (r - h * across.count) * across.slope;
  }
  const int64_t weight_row = static_cast<int64_t>(s.kernel_height) * s.kernel_width * s.packs;
  w += (static_cast<int64_t>(group) * s.outputs + n0 + row) * weight_row * VEC;

  const int total = down.taps * across.taps * s.packs;  // packs along the summed axis
  int c = pack % s.packs, kw = 0, kh = 0;
  if (total > 0) {
    kh = pack / s.packs / across.taps;
    kw = pack / s.packs % across.taps;
  }
  const auto fetch = [&](char* tile) {
    char* to = tile + row * ROW_PITCH + pack * 16;
    const bool live = kh < down.taps;
#pragma unroll
    for (int i = 0; i < PASSES; ++i) {
      const int h = high[i] + kh * down.step, v = wide[i] + kw * across.step;
      const bool inside = live && static_cast<unsigned>(h) < static_cast<unsigned>(s.height) &&
                          static_cast<unsigned>(v) < static_cast<unsigned>(s.width);
      const int64_t pixel = static_cast<int64_t>(h) * s.width + v;
      cp_async<16>(to + i * ROWS * ROW_PITCH,
                   inside ? x + (base[i] + pixel * s.pitch + c * VEC) : x, inside);
    }
    const int tap = (down.tap + kh * down.tap_step) * s.kernel_width + across.tap +
                    kw * across.tap_step;
    const int64_t offset = (static_cast<int64_t>(tap) * s.packs + c) * VEC;
#pragma unroll
    for (int i = 0; i < WEIGHT_PASSES; ++i) {
      const bool inside = live && n0 + row + i * ROWS < s.outputs;
      cp_async<16>(to + (BM + i * ROWS) * ROW_PITCH,
                   inside ? w + (i * ROWS * weight_row * VEC + offset) : x, inside);
    }
    c += 4;
    while (c >= s.packs) {
      c -= s.packs;
      if (++kw == across.taps) kw = 0, ++kh;
    }
  };
  Product<T, BM, BN, WM, WN, TENSOR, true> product;
  run_pipeline<STAGE>(tiles, BM * ROW_PITCH, (total + 3) / 4, product, fetch);

  // Through shared memory, so that neighbouring threads write neighbouring places.
  A* staged = reinterpret_cast<A*>(tiles);
  const bool by_channel = s.out_channel == 1;
  const int step_m = by_channel ? BN + 8 : 1, step_n = by_channel ? 1 : BM + 4;
  product.each([&](int m, int n, A value) { staged[m * step_m + n * step_n] = value; });
  __syncthreads();
  if (bias != nullptr) bias += static_cast<int64_t>(group) * s.outputs;
  if (by_channel && s.outputs % VEC == 0) {
    constexpr int PART = 16 / sizeof(A);
    for (int i = threadIdx.x; i < BM * (BN / VEC); i += THREADS) {
      const int m = i / (BN / VEC), n = i % (BN / VEC) * VEC;
      if (places[m] < 0 || n0 + n >= s.outputs) continue;
      Pack<T, VEC> out;
#pragma unroll
      for (int v = 0; v < VEC; v += PART) {
        const Pack<A, PART> sums = load<PART>(staged + m * step_m + n + v);
#pragma unroll
        for (int q = 0; q < PART; ++q) {
          out[v + q] = narrow<T>(sums[q] + (bias != nullptr ? widen(bias[n0 + n + v + q]) : A(0)));
        }
      }
      store(y + (places[m] + n0 + n), out);
    }
  } else {
    for (int i = threadIdx.x; i < BM * BN; i += THREADS) {
      const int m = by_channel ? i / BN : i % BM, n = by_channel ? i % BN : i / BM;
      if (places[m] < 0 || n0 + n >= s.outputs) continue;
      const A sum = staged[m * step_m + n * step_n];
      y[places[m] + (n0 + n) * s.out_channel] =
          narrow<T>(sum + (bias != nullptr ? widen(bias[n0 + n]) : A(0)));
    }
  }
}

// A tile is BM output channels by BN pairs of tap and input channel, summed over one split of the
// output pixels: sums[split, group, output, tap, channel].
template <typename T, typename A, int BM, int BN, int WM, int WN, bool TENSOR>
__global__ void __launch_bounds__(THREADS_OF<WM, WN, TENSOR>, RESIDENT<WM, WN, TENSOR>)
    conv2d_backward_weight(const T* __restrict__ g, const T* __restrict__ x, const Weights s,
                           A* __restrict__ sums) {
  constexpr int THREADS = THREADS_OF<WM, WN, TENSOR>, VEC = 16 / sizeof(T), STEP = ROW / sizeof(T);
  constexpr int G_PACKS = BM / VEC, X_PACKS = BN / VEC;  // of a tile's row
  constexpr int G_ROWS = THREADS / G_PACKS, X_ROWS = THREADS / X_PACKS;
  constexpr int G_PASSES = STEP / G_ROWS, X_PASSES = STEP / X_ROWS;
  static_assert(G_PASSES * G_ROWS == STEP && X_PASSES * X_ROWS == STEP, "whole passes");
  constexpr int SECOND = STEP * column_pitch<T>(BM), STAGE = SECOND + STEP * column_pitch<T>(BN);
  extern __shared__ __align__(16) char tiles[];

  const int width = s.kernel_height * s.kernel_width * s.packs * VEC;  // columns, a multiple of VEC
  const int tiles_down = (s.outputs + BM - 1) / BM;
  const int m0 = blockIdx.x % tiles_down * BM, n0 = blockIdx.x / tiles_down * BN;
  const int group = blockIdx.y;

  const int g_pack = threadIdx.x % G_PACKS, g_row = threadIdx.x / G_PACKS;
  const bool g_live = m0 / VEC + g_pack < s.g_packs;
  const int x_pack = threadIdx.x % X_PACKS, x_row = threadIdx.x / X_PACKS;
  const int tap = (n0 / VEC + x_pack) / s.packs, c = (n0 / VEC + x_pack) % s.packs;
  const int kh = tap / s.kernel_width, kw = tap % s.kernel_width;
  const bool x_live = kh < s.kernel_height;
  const int high = kh * s.dilation_height - s.padding_height;
  const int wide = kw * s.dilation_width - s.padding_width;
  const T* g_from = g + (group * s.g_group + m0 + g_pack * VEC);
  const T* x_from = x + (group * s.group + c * VEC);

  const int64_t start = static_cast<int64_t>(blockIdx.z) * s.split;
  const int end = static_cast<int>(start + s.split < s.pixels ? start + s.split : s.pixels);
  int first = static_cast<int>(start < s.pixels ? start : s.pixels);  // pixel of the next tile
  const int steps = (end - first + STEP - 1) / STEP;
  const auto fetch = [&](char* tile) {
#pragma unroll
    for (int i = 0; i < G_PASSES; ++i) {
      const int k = g_row + i * G_ROWS;
      const bool inside = g_live && k < end - first;
      cp_async<16>(tile + k * column_pitch<T>(BM) + g_pack * 16,
                   inside ? g_from + static_cast<int64_t>(first + k) * s.g_pitch : g, inside);
    }
#pragma unroll
    for (int i = 0; i < X_PASSES; ++i) {
      const int k = x_row + i * X_ROWS;
      const int p = k < end - first ? first + k : 0;
      const int n = s.by_image.of(p), r = p - n * static_cast<int>(s.by_image.value);
      const int down = s.by_row.of(r);
      const int h = down * s.stride_height + high;
      const int v = (r - down * static_cast<int>(s.by_row.value)) * s.stride_width + wide;
      const bool inside = x_live && k < end - first &&
                          static_cast<unsigned>(h) < static_cast<unsigned>(s.height) &&
                          static_cast<unsigned>(v) < static_cast<unsigned>(s.width);
      const int64_t pixel = static_cast<int64_t>(h) * s.width + v;
      cp_async<16>(tile + SECOND + k * column_pitch<T>(BN) + x_pack * 16,
                   inside ? x_from + (n * s.image + pixel * s.pitch) : x, inside);
    }
    first += STEP < end - first ? STEP : end - first;
  };
  Product<T, BM, BN, WM, WN, TENSOR, false> product;
  run_pipeline<STAGE>(tiles, SECOND, steps, product, fetch);

  A* staged = reinterpret_cast<A*>(tiles);
  product.each([&](int m, int n, A value) { staged[m * (BN + 8) + n] = value; });
  __syncthreads();
  constexpr int PART = 16 / sizeof(A);  // divides VEC, so a pack is inside or outside as a whole
  sums += (static_cast<int64_t>(blockIdx.z) * gridDim.y + group) * s.outputs * width;
  for (int i = threadIdx.x; i < BM * (BN / PART); i += THREADS) {
    const int m = i / (BN / PART), n = i % (BN / PART) * PART;
    if (m0 + m >= s.outputs || n0 + n >= width) continue;
    store(sums + (static_cast<int64_t>(m0 + m) * width + n0 + n),
          load<PART>(staged + m * (BN + 8) + n));
  }
}

// gw[row, channel, tap] = the sum over splits of sums[split, row, tap, channel], by PARTS threads
// each; `last`: gw lies as [row, tap, channel].
template <typename T, typename A, int PARTS>
__global__ void __launch_bounds__(256)
    conv2d_backward_reduce(const A* __restrict__ sums, int splits, uint32_t count, int channels,
                           int padded, int taps, bool last, T* __restrict__ gw) {
  constexpr uint32_t LANES = 256 / PARTS;
  static_assert(LANES * PARTS == 256, "whole threads");
  __shared__ A parts[256];
  const uint32_t lane = threadIdx.x % LANES, part = threadIdx.x / LANES;
  const uint32_t i = blockIdx.x * LANES + lane;  // below count + 256 < 2^32
  const uint32_t fast = last ? channels : taps, slow = last ? taps : channels;
  const uint32_t a = i % fast, b = i / fast % slow, row = i / fast / slow;
  const uint32_t channel = last ? a : b, tap = last ? b : a;
  A sum = A(0);
  if (i < count) {
    const int64_t rows = count / (static_cast<uint32_t>(channels) * taps);
    const int64_t split = rows * taps * padded;
    const A* from = sums + ((static_cast<int64_t>(row) * taps + tap) * padded + channel);
#pragma unroll 8
    for (int k = part; k < splits; k += PARTS) sum += from[k * split];
  }
  if constexpr (PARTS > 1) {
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (part > 0) return;
#pragma unroll
    for (int k = 1; k < PARTS; ++k) sum += parts[k * LANES + lane];
  }
  if (i < count) gw[i] = narrow<T>(sum);
}

// y[image, group, pixel, channel] = x of the same, zeros from `channels` to `padded`; offsets in
// elements, the channels of y next to each other. READ: elements read at once: 16 bytes, where
// pixels lie next to each other and lines of them begin at multiples of that, or one.
template <typename T, int PIXELS, int READ>
__global__ void __launch_bounds__(256)
    conv2d_pack(const T* __restrict__ x, int64_t image, int64_t group, int64_t channel,
                int64_t pixel, int groups, int channels, int padded, int64_t pixels,
                int64_t y_image, int64_t y_group, int64_t y_pixel, T* __restrict__ y) {
  constexpr int CHANNELS = 2048 / PIXELS, VEC = 16 / sizeof(T), PACKS = CHANNELS / VEC;
  __shared__ T tile[CHANNELS][PIXELS + (sizeof(T) == 2 ? 2 : 1)];
  const int pixel_tiles = static_cast<int>((pixels + PIXELS - 1) / PIXELS);
  const int channel_tiles = (padded + CHANNELS - 1) / CHANNELS;
  int block = blockIdx.x;
  const int c0 = block % channel_tiles * CHANNELS;
  block /= channel_tiles;
  const int64_t p0 = static_cast<int64_t>(block % pixel_tiles) * PIXELS;
  block /= pixel_tiles;
  x += block / groups * image + block % groups * group;
  y += block / groups * y_image + block % groups * y_group;
#pragma unroll
  for (int k = 0; k < 8 / READ; ++k) {
    const int i = threadIdx.x + 256 * k;
    const bool down = READ == 1 && channel == 1;  // channels lie next to each other
    const int c = down ? i % CHANNELS : i / (PIXELS / READ);
    const int p = down ? i / CHANNELS : i % (PIXELS / READ) * READ;
    Pack<T, READ> values;
#pragma unroll
    for (int v = 0; v < READ; ++v) values[v] = narrow<T>(acc_t<T>(0));
    if (c0 + c < channels && p0 + p < pixels) {
      values = load<READ>(x + ((c0 + c) * channel + (p0 + p) * pixel));
    }
#pragma unroll
    for (int v = 0; v < READ; ++v) tile[c][p + v] = values[v];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < PIXELS * PACKS; i += 256) {
    const int c = i % PACKS * VEC, p = i / PACKS;
    if (c0 + c >= padded || p0 + p >= pixels) continue;
    Pack<T, VEC> out;
#pragma unroll
    for (int v = 0; v < VEC; ++v) out[v] = tile[c + v][p];
    store(y + ((p0 + p) * y_pixel + c0 + c), out);
  }
}
