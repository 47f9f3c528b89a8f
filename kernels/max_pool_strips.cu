// Maxima of the windows that halve an image, forward and backward.
//
// Op:          max_pool, max_pool_backward, max_pool_winners: kernel 3, stride 2, padding 1, and kernel
//              2, stride 2 without padding
// Math:        as max_pool.cu: y[o] = max of x over the window o; gx[i] = sum of g[o] over the windows
//              o that i wins. Of equal values the first wins, of NaNs the last
// Layout:      planes: contiguous (n, c, h, w), w even; channels: channels last, (n, h, w, c) in
//              memory. winners (16 row + column) lies as y
// Launch:      block 256, grid ceil(strips / 256). A strip is, for planes, VEC columns of x by ROWS
//              rows of y; for channels, a pack of channels of ROWS rows of y (forward) or of 2 x 2
//              inputs (backward)
// Cost:        x, y and one byte an output; backward g, that byte, and gx: bound by memory. A strip's
//              first rows are read again by the strip above: (2 ROWS + 1) / (2 ROWS) from the cache
// Types:       float16, bfloat16, float32 -> float32; float64
// Determinism: bit for bit: every gradient is gathered by the thread that writes it
// Limits:      other windows, dilation, odd rows (planes), 2^31 strips: max_pool.cu
// Variants:    KERNEL: 3 or 2. VEC: as wide as a row or the channels divide by
// Instances:   max_pool_forward_strips<float, 4, 3, 4>: 96 registers, 0 bytes shared
//              max_pool_forward_strips<float, 4, 3, 2>: 96 registers, 0 bytes shared
//              max_pool_forward_strips<float, 4, 2, 4>: 96 registers, 0 bytes shared
//              max_pool_forward_strips<__half, 8, 3, 4>: 128 registers, 0 bytes shared
//              max_pool_forward_strips<__nv_bfloat16, 8, 3, 2>: 128 registers, 0 bytes shared
//              max_pool_forward_strips<double, 2, 3, 4>: 96 registers, 0 bytes shared
//              max_pool_backward_strips<float, 4, 3, 4>: 96 registers, 0 bytes shared
//              max_pool_backward_strips<float, 4, 2, 4>: 96 registers, 0 bytes shared
//              max_pool_backward_strips<float, 4, 3, 2>: 96 registers, 0 bytes shared
//              max_pool_backward_strips<__nv_bfloat16, 8, 3, 4>: 96 registers, 0 bytes shared
//              max_pool_backward_strips<double, 2, 3, 4>: 96 registers, 0 bytes shared
//              max_pool_forward_channels_strips<float, 4, 3, 2>: 128 registers, 0 bytes shared
//              max_pool_forward_channels_strips<float, 4, 3, 1>: 128 registers, 0 bytes shared
//              max_pool_forward_channels_strips<__nv_bfloat16, 8, 3, 1>: 128 registers, 0 bytes shared
//              max_pool_forward_channels_strips<float, 4, 2, 2>: 128 registers, 0 bytes shared
//              max_pool_forward_channels_strips<double, 2, 3, 2>: 128 registers, 0 bytes shared
//              max_pool_backward_channels_strips<float, 4, 3>: 96 registers, 0 bytes shared
//              max_pool_backward_channels_strips<float, 4, 2>: 96 registers, 0 bytes shared
//              max_pool_backward_channels_strips<__half, 8, 3>: 96 registers, 0 bytes shared
//              max_pool_backward_channels_strips<double, 2, 3>: 96 registers, 0 bytes shared
// Source:      none
// Measured:    NVIDIA H200, 128x64x112x112 3/2/1 float32, 2026-11-23: forward 127 us, 4.24 TB/s, 107 % of
//              a copy, backward 144 us, 3.74 TB/s; channels last 150 and 146 us; 2/2 126 and 145 us

#include "common.cuh"
#include "pool.cuh"

// ---------------------------------------------------------------------------- device helpers

// The code of the first place inside of a window in the first row or column of windows, or in others.
template <int PAD>
__device__ __forceinline__ int first_code(bool first_row, bool first_column) {
  return (first_row ? 16 * PAD : 0) + (first_column ? PAD : 0);
}

// ---------------------------------------------------------------------------- kernels

// Strips: stride 2, kernel 3 with padding 1, or kernel 2 without; rows of even length. A thread has
// VEC neighbouring columns of x and what lies over them in ROWS rows of y; what its window reaches
// beside them the lane before it has read. `strips` is how many threads there are to be.
template <typename T, int VEC, int KERNEL, int ROWS>
__global__ void __launch_bounds__(256)
    max_pool_forward_strips(const T* __restrict__ x, uint32_t strips, int height, int width,
                            int out_height, T* __restrict__ y, uint8_t* __restrict__ winners) {
  static_assert(KERNEL == 2 || KERNEL == 3, "windows that overlap by one at most");
  typedef acc_t<T> A;
  constexpr int PAD = KERNEL - 2, WIDE = VEC / 2, HIGH = 2 * ROWS + PAD;
  const uint32_t strip = blockIdx.x * 256 + threadIdx.x;
  const uint32_t across = width / VEC, down = (out_height + ROWS - 1) / ROWS;
  const uint32_t band = strip / across, column = strip - band * across, plane = band / down;
  const int first = (band - plane * down) * ROWS;
  const T* source = x + static_cast<int64_t>(plane) * height * width + column * VEC;
  Pack<T, VEC> rows[HIGH];
  A before[HIGH];
#pragma unroll
  for (int a = 0; a < HIGH; ++a) {
    const int row = 2 * first - PAD + a;
    const bool inside = strip < strips && row >= 0 && row < height;
#pragma unroll
    for (int v = 0; v < VEC; ++v) rows[a][v] = narrow<T>(lowest(A(0)));
    before[a] = lowest(A(0));
    if (inside) {
      rows[a] = load<VEC>(source + row * width);
      if (PAD && threadIdx.x % 32 == 0 && column > 0) before[a] = at(source, row * width - 1);
    }
  }
  if constexpr (PAD > 0) {
#pragma unroll
    for (int a = 0; a < HIGH; ++a) {
      const A other = __shfl_up_sync(0xffffffffu, widen(rows[a][VEC - 1]), 1);
      if (threadIdx.x % 32 != 0 && column > 0) before[a] = other;
    }
  }
  if (strip >= strips) return;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if (first + r >= out_height) return;
    Pack<T, WIDE> out;
    Pack<uint8_t, WIDE> codes;
#pragma unroll
    for (int w = 0; w < WIDE; ++w) {
      Winner<A> winner;
      winner.start(first_code<PAD>(first + r == 0, w == 0 && column == 0));
#pragma unroll
      for (int a = 0; a < KERNEL; ++a) {
#pragma unroll
        for (int b = 0; b < KERNEL; ++b) {
          const int v = 2 * w - PAD + b;
          const A value = v < 0 ? before[2 * r + a] : widen(rows[2 * r + a][v < 0 ? 0 : v]);
          winner.meet(value, 16 * a + b);
        }
      }
      out[w] = narrow<T>(winner.best);
      codes[w] = static_cast<uint8_t>(winner.code);
    }
    const int64_t to =
        (static_cast<int64_t>(plane) * out_height + first + r) * (width / 2) + column * WIDE;
    store<WIDE>(y + to, out);
    store<WIDE>(winners + to, codes);
  }
}

template <typename T, int VEC, int KERNEL, int ROWS>
__global__ void __launch_bounds__(256)
    max_pool_backward_strips(const T* __restrict__ g, const uint8_t* __restrict__ winners,
                             uint32_t strips, int height, int width, int out_height,
                             T* __restrict__ gx) {
  static_assert(KERNEL == 2 || KERNEL == 3, "windows that overlap by one at most");
  typedef acc_t<T> A;
  constexpr int PAD = KERNEL - 2, WIDE = VEC / 2, HIGH = ROWS + PAD;
  const uint32_t strip = blockIdx.x * 256 + threadIdx.x;
  const uint32_t across = width / VEC, down = (height + 2 * ROWS - 1) / (2 * ROWS);
  const uint32_t band = strip / across, column = strip - band * across, plane = band / down;
  const int first = (band - plane * down) * ROWS;
  Pack<T, WIDE> values[HIGH];
  Pack<uint8_t, WIDE> codes[HIGH];
  A after[HIGH];
  int code_after[HIGH];
#pragma unroll
  for (int a = 0; a < HIGH; ++a) {
    const int64_t from =
        (static_cast<int64_t>(plane) * out_height + first + a) * (width / 2) + column * WIDE;
#pragma unroll
    for (int w = 0; w < WIDE; ++w) {
      values[a][w] = narrow<T>(A(0));
      codes[a][w] = NOBODY;
    }
    after[a] = A(0);
    code_after[a] = NOBODY;
    if (strip < strips && first + a < out_height) {
      values[a] = load<WIDE>(g + from);
      codes[a] = load<WIDE>(winners + from);
      if (PAD && threadIdx.x % 32 == 31 && column + 1 < across) {
        after[a] = at(g, from + WIDE);
        code_after[a] = winners[from + WIDE];
      }
    }
  }
  if constexpr (PAD > 0) {
#pragma unroll
    for (int a = 0; a < HIGH; ++a) {
      const A value = __shfl_down_sync(0xffffffffu, widen(values[a][0]), 1);
      const int code = __shfl_down_sync(0xffffffffu, static_cast<int>(codes[a][0]), 1);
      if (threadIdx.x % 32 != 31 && column + 1 < across) {
        after[a] = value;
        code_after[a] = code;
      }
    }
  }
  if (strip >= strips) return;
#pragma unroll
  for (int r = 0; r < 2 * ROWS; ++r) {
    const int row = 2 * first + r;
    if (row >= height) return;
    A sums[VEC];
#pragma unroll
    for (int v = 0; v < VEC; ++v) sums[v] = A(0);
#pragma unroll
    for (int a = 0; a < HIGH; ++a) {
      const int down_by = r + PAD - 2 * a;
      if (down_by < 0 || down_by >= KERNEL) continue;
#pragma unroll
      for (int w = 0; w < WIDE + PAD; ++w) {
        const A value = w < WIDE ? widen(values[a][w < WIDE ? w : 0]) : after[a];
        const int code = w < WIDE ? codes[a][w < WIDE ? w : 0] : code_after[a];
#pragma unroll
        for (int b = 0; b < KERNEL; ++b) {
          const int v = 2 * w - PAD + b;
          if (v < 0 || v >= VEC) continue;
          sums[v] += code == 16 * down_by + b ? value : A(0);
        }
      }
    }
    Pack<T, VEC> out;
#pragma unroll
    for (int v = 0; v < VEC; ++v) out[v] = narrow<T>(sums[v]);
    store<VEC>(gx + (static_cast<int64_t>(plane) * height + row) * width + column * VEC, out);
  }
}

// The same windows, channels last: a thread has a pack of channels of ROWS outputs, one below the
// other.
template <typename T, int VEC, int KERNEL, int ROWS>
__global__ void __launch_bounds__(256, 2)
    max_pool_forward_channels_strips(const T* __restrict__ x, uint32_t strips, int channels,
                                     int height, int width, int out_height, int out_width,
                                     T* __restrict__ y, uint8_t* __restrict__ winners) {
  static_assert(KERNEL == 2 || KERNEL == 3, "windows that overlap by one at most");
  typedef acc_t<T> A;
  constexpr int PAD = KERNEL - 2, HIGH = 2 * ROWS + PAD;
  const uint32_t strip = blockIdx.x * 256 + threadIdx.x;
  if (strip >= strips) return;
  const uint32_t packs = channels / VEC, down = (out_height + ROWS - 1) / ROWS;
  const uint32_t spot = strip / packs, band = spot / out_width, image = band / down;
  const int c = (strip - spot * packs) * VEC, column = spot - band * out_width;
  const int first = (band - image * down) * ROWS;
  Pack<T, VEC> values[HIGH][KERNEL];
#pragma unroll
  for (int a = 0; a < HIGH; ++a) {
    const int row = 2 * first - PAD + a;
    const int64_t line = (static_cast<int64_t>(image) * height + row) * width;
#pragma unroll
    for (int b = 0; b < KERNEL; ++b) {
      const int from = 2 * column - PAD + b;
#pragma unroll
      for (int v = 0; v < VEC; ++v) values[a][b][v] = narrow<T>(lowest(A(0)));
      if (row >= 0 && row < height && from >= 0 && from < width) {
        values[a][b] = load<VEC>(x + (line + from) * channels + c);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if (first + r >= out_height) return;
    Pack<T, VEC> out;
    Pack<uint8_t, VEC> codes;
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      Winner<A> winner;
      winner.start(first_code<PAD>(first + r == 0, column == 0));
#pragma unroll
      for (int a = 0; a < KERNEL; ++a) {
#pragma unroll
        for (int b = 0; b < KERNEL; ++b) {
          winner.meet(widen(values[2 * r + a][b][v]), 16 * a + b);
        }
      }
      out[v] = narrow<T>(winner.best);
      codes[v] = static_cast<uint8_t>(winner.code);
    }
    const int64_t line = static_cast<int64_t>(image) * out_height + first + r;
    const int64_t to = (line * out_width + column) * channels + c;
    store<VEC>(y + to, out);
    store<VEC>(winners + to, codes);
  }
}

// A thread has a pack of channels of two by two inputs.
template <typename T, int VEC, int KERNEL>
__global__ void __launch_bounds__(256)
    max_pool_backward_channels_strips(const T* __restrict__ g, const uint8_t* __restrict__ winners,
                                      uint32_t strips, int channels, int height, int width,
                                      int out_height, int out_width, T* __restrict__ gx) {
  static_assert(KERNEL == 2 || KERNEL == 3, "windows that overlap by one at most");
  typedef acc_t<T> A;
  constexpr int PAD = KERNEL - 2, REACH = PAD + 1;
  const uint32_t strip = blockIdx.x * 256 + threadIdx.x;
  if (strip >= strips) return;
  const uint32_t packs = channels / VEC, across = (width + 1) / 2, down = (height + 1) / 2;
  const uint32_t spot = strip / packs, band = spot / across, image = band / down;
  const int c = (strip - spot * packs) * VEC;
  const int row = band - image * down, column = spot - band * across;  // of windows
  Pack<T, VEC> values[REACH][REACH];
  Pack<uint8_t, VEC> codes[REACH][REACH];
#pragma unroll
  for (int a = 0; a < REACH; ++a) {
#pragma unroll
    for (int b = 0; b < REACH; ++b) {
      const int64_t line = static_cast<int64_t>(image) * out_height + row + a;
      const int64_t from = (line * out_width + column + b) * channels + c;
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        values[a][b][v] = narrow<T>(A(0));
        codes[a][b][v] = NOBODY;
      }
      if (row + a < out_height && column + b < out_width) {
        values[a][b] = load<VEC>(g + from);
        codes[a][b] = load<VEC>(winners + from);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (2 * row + i >= height || 2 * column + j >= width) continue;
      Pack<T, VEC> out;
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        A sum = A(0);
#pragma unroll
        for (int a = 0; a < REACH; ++a) {
#pragma unroll
          for (int b = 0; b < REACH; ++b) {
            const int down_by = i + PAD - 2 * a, right_by = j + PAD - 2 * b;
            if (down_by < 0 || right_by < 0) continue;
            sum += codes[a][b][v] == 16 * down_by + right_by ? widen(values[a][b][v]) : A(0);
          }
        }
        out[v] = narrow<T>(sum);
      }
      const int64_t line = static_cast<int64_t>(image) * height + 2 * row + i;
      store<VEC>(gx + (line * width + 2 * column + j) * channels + c, out);
    }
  }
}
