// Convolutions of few channels, whose windows hold up to 32 values: a network's first one.
//
// Op:          conv
// Math:        y[n, o, p] = b[o] + sum over taps k, channels c of
//              x[n, c, p s - pad + k d] w[o, c, k]
// Layout:      x: any strides; w: contiguous; y: dense by pixels (NHWC), outputs a multiple of 16
//              bytes
// Launch:      grid (as many blocks as there is room for, at most (pixels + 63) / 64;
//              (outputs + 63) / 64), block 128; no shared memory
// Cost:        bound by writing y. A lane gathers its values of the windows of 16 pixels, which
//              neighbours find in L1; no copy of x by pixels is made
// Types:       float -> float (rounded to tf32), half, bfloat16 -> float
// Determinism: bit for bit
// Limits:      groups, windows of more than 32 values, 2^31 pixels, images that span 2^31 elements;
//              below sm_80
// Variants:    STEPS products along the window
// Instances:   conv2d_few<float,4>: 168 registers, 0 bytes shared
//   conv2d_few<float,2>: 168 registers, 0 bytes shared
//   conv2d_few<float,1>: 168 registers, 0 bytes shared
//   conv2d_few<__half,2>: 168 registers, 0 bytes shared
//   conv2d_few<__nv_bfloat16,1>: 168 registers, 0 bytes shared
// Source:      Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014
// Measured:    NVIDIA H200, 2026-11-23, 512x3x32x32 to 64 by 3x3: TF32 59 us (134 MB are written
//              in 33), bfloat16 54 (17); conv2d_forward and conv2d_pack before it 103 and 95.
//              Reading each value where it is used: 83 and 63

#include "common.cuh"
#include "mma.cuh"
#include "divisor.cuh"

// ---------------------------------------------------------------------------- device helpers

constexpr int THREADS = 128;
constexpr int BN = 64;  // outputs of a block

// What is read and written; distances in elements.
struct Windows {
  int64_t image, channel, row, pixel;  // of x
  int pixels, outputs, values;         // of y, all images; values: of a window
  int height, width, kernel_height, kernel_width;
  int stride_height, stride_width, padding_height, padding_width, dilation_height, dilation_width;
  Divisor by_image, by_row;  // pixels of y of an image, of a row
};

// Value k of all windows: its place in one, in elements from where the window begins; `down` is
// beyond any image if windows have fewer values.
struct Tap {
  int offset, down, across;
  __device__ __forceinline__ Tap(const Windows& s, int k) {
    const int area = s.kernel_height * s.kernel_width, c = k / area, tap = k - c * area;
    const int i = tap / s.kernel_width;
    across = (tap - i * s.kernel_width) * s.dilation_width;
    down = i * s.dilation_height;
    offset = static_cast<int>(c * s.channel + down * s.row + across * s.pixel);
    if (k >= s.values) down = 1 << 30;
  }
};

// The window of an output pixel.
template <typename T>
struct Window {
  const T* first;
  int high, wide;
  __device__ __forceinline__ Window(const T* x, const Windows& s, int pixel) {
    const int n = s.by_image.of(pixel), r = pixel - n * static_cast<int>(s.by_image.value);
    const int i = s.by_row.of(r), j = r - i * static_cast<int>(s.by_row.value);
    high = i * s.stride_height - s.padding_height;
    wide = j * s.stride_width - s.padding_width;
    first = x + (n * s.image + high * s.row + wide * s.pixel);
  }
  // Reads something, `x` if nothing else, so that no branch keeps the next read waiting.
  __device__ __forceinline__ T at(const T* x, const Windows& s, const Tap& tap) const {
    const bool inside =
        static_cast<unsigned>(high + tap.down) < static_cast<unsigned>(s.height) &&
        static_cast<unsigned>(wide + tap.across) < static_cast<unsigned>(s.width);
    const T value = *(inside ? first + tap.offset : x);
    return inside ? value : narrow<T>(0.0f);
  }
};

// A register of a product's operand: one float, or two halves.
__device__ __forceinline__ uint32_t operand(const float (&values)[1]) { return to_tf32(values[0]); }
template <typename T>
__device__ __forceinline__ uint32_t operand(const T (&values)[2]) {
  Pack<T, 2> pair;
  pair[0] = values[0], pair[1] = values[1];
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// ---------------------------------------------------------------------------- kernels

// A warp: 16 pixels by BN outputs, then 16 others. A register of the products' operands holds EACH
// values. Column 8 j + n of the products is the output that lets a lane write 16 bytes at once.
template <typename T, int STEPS>
__global__ void __launch_bounds__(THREADS, 3)
    conv2d_few(const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ bias,
               const Windows s, T* __restrict__ y) {
  constexpr int EACH = 4 / sizeof(T), VEC = 16 / sizeof(T);
  constexpr int TILES = BN / 8, TOGETHER = VEC / 2;  // of 8 columns; those of a lane's 16 bytes
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, n0 = blockIdx.y * BN;

  const auto place = [&](int step, int half, int e) {  // of a value in the windows
    return (8 * step + 4 * half + t) * EACH + e;
  };
  uint32_t b[STEPS][TILES][2];
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
#pragma unroll
    for (int j = 0; j < TILES; ++j) {
      const int n = n0 + j / TOGETHER * 4 * VEC + g / 2 * VEC + j % TOGETHER * 2 + g % 2;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        T values[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
          const int k = place(step, half, e);
          const bool inside = n < s.outputs && k < s.values;
          values[e] = inside ? w[n * s.values + k] : narrow<T>(0.0f);
        }
        b[step][j][half] = operand(values);
      }
    }
  }

  const int tiles = (s.pixels + 15) / 16;
  const int stride = gridDim.x * (THREADS / 32);
  for (int tile = blockIdx.x * (THREADS / 32) + threadIdx.x / 32; tile < tiles; tile += stride) {
    const int m = tile * 16 + g;
    const Window<T> windows[2] = {Window<T>(x, s, min(m, s.pixels - 1)),
                                  Window<T>(x, s, min(m + 8, s.pixels - 1))};
    T values[STEPS][4][EACH];
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
          const Tap tap(s, place(step, half, e));
#pragma unroll
          for (int i = 0; i < 2; ++i) values[step][2 * half + i][e] = windows[i].at(x, s, tap);
        }
      }
    }
    float sums[TILES][4] = {};
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      uint32_t a[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = operand(values[step][i]);
#pragma unroll
      for (int j = 0; j < TILES; ++j) {
        if constexpr (sizeof(T) == 2) {
          mma_16<T>(sums[j], a, b[step][j]);
        } else {
          mma_tf32(sums[j], a, b[step][j]);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < TILES; j += TOGETHER) {
      const int n = n0 + j * 8 + t * VEC;
      if (n >= s.outputs) continue;
      float more[VEC] = {};
      if (bias != nullptr) {
#pragma unroll
        for (int v = 0; v < VEC; ++v) more[v] = widen(bias[n + v]);
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Pack<T, VEC> out;
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
          out[v] = narrow<T>(sums[j + v / 2][2 * h + v % 2] + more[v]);
        }
        if (m + 8 * h < s.pixels) {
          store(y + (static_cast<int64_t>(m + 8 * h) * s.outputs + n), out);
        }
      }
    }
  }
}
