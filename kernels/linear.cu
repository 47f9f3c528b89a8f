// Linear layers on few rows: products that are too small for a library's tiles.
//
// Op:          linear, linear_backward_input, linear_backward_weight, linear_backward
// Math:        y = x w^T + b;  gx = g w;  gw = g^T x, gb = the sum of g's rows
// Layout:      x (rows, inputs), w (outputs, inputs), g and y (rows, outputs), all contiguous
// Launch:      forward: grid (ceil(outputs / 8), ceil(rows / 8)), block of 32 to 256 threads, a pack
//              of inputs each. backward_input: grid (ceil(inputs / 32), ceil(rows / 8)), block 256.
//              backward_weight: grid ceil(inputs / (64 VEC)) ceil(outputs / 8), block 256.
//              linear_backward: the blocks of both, in one row
// Cost:        2 rows inputs outputs operations each; w and x come from the L2 cache, w rows / 8 and x
//              outputs / 8 times. Bound by latency: one trip to the L2 cache and one reduction
// Types:       float -> float
// Determinism: bit for bit
// Limits:      float; rows, inputs and outputs at least 1
// Variants:    VEC: 4 where rows of what is read are a multiple of 16 bytes apart and begin at one,
//              else 1. The launcher leaves to cuBLASLt, as measured: more than 128 rows, more than
//              2^25 products, and of gx also weights beyond 2^18 and more than 2^24 products. Tiles
//              of 8 are unrolled by 2 for gx; by 4 the compiler spilled
// Instances:   linear_forward<float, 4>: 240 registers, 2048 bytes shared
//              linear_forward<float, 1>: 168 registers, 2048 bytes shared
//              linear_backward_input<float, 4>: 104 registers, 8192 bytes shared
//              linear_backward_input<float, 1>: 64 registers, 8192 bytes shared
//              linear_backward_weight<float, 4>: 96 registers, 28672 bytes shared
//              linear_backward_weight<float, 1>: 64 registers, 10240 bytes shared
//              linear_backward<float, 4, 4>: 128 registers, 36864 bytes shared
//              linear_backward<float, 1, 4>: 112 registers, 36864 bytes shared
//              linear_backward<float, 4, 1>: 128 registers, 18432 bytes shared
//              linear_backward<float, 1, 1>: 112 registers, 18432 bytes shared
// Source:      none
// Measured:    NVIDIA H200, 2026-11-23, us beside cuBLASLt's, rows x inputs x outputs, in a graph:
//              forward 32x784x256 3.3 (7.4), 32x256x128 2.7 (9.9), 32x128x10 2.7 (6.8),
//              128x1568x128 5.4 (11.4); gx 5.5 (6.3), 3.5 (5.5), 1.6 (4.6), 7.6 (5.3); gw and gb
//              3.1 (4.3), 3.1 (4.4), 3.0 (4.2), 5.8 (6.6), and 128x128x10 5.4 (54). Both of
//              32x256x128 in one launch: 3.8. A launch alone takes about 1.5

#include "common.cuh"

// ---------------------------------------------------------------------------- device helpers

constexpr int TILE = 8;            // rows and outputs of what a block computes
constexpr int ROWS_AT_ONCE = 128;  // of g, in shared memory for the gradient of the weights
constexpr int GROUPS = 4;          // of threads that share those rows
constexpr int UNROLL = 2;          // loads of weights and gradients under way for gx

// Sums COUNT values over the lanes of a warp. Lane i ends with values i * COUNT / 32 and following,
// first in `values`: each step gives half of the values away and takes the other half of its own.
template <int COUNT, int STEP, typename A>
__device__ __forceinline__ void scatter_sums(A* values, int lane) {
  constexpr int half = COUNT / 2;
  const bool upper = lane & STEP;
#pragma unroll
  for (int i = 0; i < half; ++i) {
    const A given = upper ? values[i] : values[i + half];
    const A kept = upper ? values[i + half] : values[i];
    values[i] = kept + __shfl_xor_sync(0xffffffffu, given, STEP);
  }
  if constexpr (STEP > 1) scatter_sums<half, STEP / 2>(values, lane);
}

// gx of 8 rows by 32 inputs, from `row` and `first` on; the 8 warps of a block share the outputs.
template <typename T, int VEC>
__device__ __forceinline__ void input_tile(const T* __restrict__ g, const T* __restrict__ w,
                                           int rows, int inputs, int outputs, int row, int first,
                                           T* __restrict__ gx) {
  typedef acc_t<T> A;
  __shared__ A partial[8][TILE][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int k = first + lane, read = min(k, inputs - 1);
  A sums[TILE] = {};
#pragma unroll UNROLL
  for (int n = warp * VEC; n < outputs; n += 8 * VEC) {
    Pack<T, VEC> gs[TILE];
    A ws[VEC];
#pragma unroll
    for (int v = 0; v < VEC; ++v) ws[v] = widen(w[static_cast<int64_t>(n + v) * inputs + read]);
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
      gs[i] = load<VEC>(g + static_cast<int64_t>(min(row + i, rows - 1)) * outputs + n);
    }
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
#pragma unroll
      for (int v = 0; v < VEC; ++v) sums[i] += widen(gs[i][v]) * ws[v];
    }
  }
#pragma unroll
  for (int i = 0; i < TILE; ++i) partial[warp][i][lane] = sums[i];
  __syncthreads();
  const int m = row + warp;
  if (m >= rows || k >= inputs) return;
  A sum = 0;
#pragma unroll
  for (int part = 0; part < 8; ++part) sum += partial[part][warp][lane];
  gx[static_cast<int64_t>(m) * inputs + k] = narrow<T>(sum);
}

// gw of 8 outputs by 64 packs of inputs, the tile `block` of those in rows; the 4 groups of a
// block's threads share the rows. For the first packs also gb, a warp for each output.
template <typename T, int VEC>
__device__ __forceinline__ void weight_tile(const T* __restrict__ g, const T* __restrict__ x,
                                            int rows, int inputs, int outputs, int block,
                                            T* __restrict__ gw, T* __restrict__ gb) {
  typedef acc_t<T> A;
  __shared__ A gs[ROWS_AT_ONCE][TILE];
  __shared__ A partial[GROUPS - 1][TILE * VEC][64];
  const int group = threadIdx.x / 64, pack = threadIdx.x % 64;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int columns = (inputs + 64 * VEC - 1) / (64 * VEC);
  const int output = block / columns * TILE, column = block % columns;
  const int k = (column * 64 + pack) * VEC;
  A sums[TILE * VEC] = {}, bias = 0;
  for (int first = 0; first < rows; first += ROWS_AT_ONCE) {
    const int count = min(ROWS_AT_ONCE, rows - first);
    if (first) __syncthreads();
    for (int i = threadIdx.x; i < count * TILE; i += 256) {
      const int n = output + i % TILE;
      const int64_t from = static_cast<int64_t>(first + i / TILE) * outputs + n;
      gs[i / TILE][i % TILE] = n < outputs ? widen(g[from]) : A(0);
    }
    __syncthreads();
    for (int m = lane; m < count; m += 32) bias += gs[m][warp];
    if (k >= inputs) continue;
#pragma unroll 8
    for (int m = group; m < count; m += GROUPS) {
      const Pack<T, VEC> xs = load<VEC>(x + static_cast<int64_t>(first + m) * inputs + k);
#pragma unroll
      for (int i = 0; i < TILE * VEC; ++i) sums[i] += gs[m][i / VEC] * widen(xs[i % VEC]);
    }
  }
  if (column == 0) {
    bias = warp_reduce<Sum>(bias);
    if (lane == 0 && output + warp < outputs) gb[output + warp] = narrow<T>(bias);
  }
  if (group > 0) {
#pragma unroll
    for (int i = 0; i < TILE * VEC; ++i) partial[group - 1][i][pack] = sums[i];
  }
  __syncthreads();
  if (group > 0 || k >= inputs) return;
#pragma unroll
  for (int i = 0; i < TILE; ++i) {
    if (output + i >= outputs) break;
    Pack<T, VEC> packed;
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      A sum = sums[i * VEC + v];
#pragma unroll
      for (int part = 0; part < GROUPS - 1; ++part) sum += partial[part][i * VEC + v][pack];
      packed[v] = narrow<T>(sum);
    }
    store<VEC>(gw + static_cast<int64_t>(output + i) * inputs + k, packed);
  }
}

// ---------------------------------------------------------------------------- kernels

// A block computes 8 rows by 8 outputs; its threads share the inputs.
template <typename T, int VEC>
__global__ void __launch_bounds__(256)
    linear_forward(const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ b,
                   int rows, int inputs, int outputs, T* __restrict__ y) {
  typedef acc_t<T> A;
  __shared__ A partial[8][TILE * TILE];
  const int row = blockIdx.y * TILE, output = blockIdx.x * TILE;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  A sums[TILE * TILE] = {};
  for (int k = threadIdx.x * VEC; k < inputs; k += blockDim.x * VEC) {
    Pack<T, VEC> xs[TILE], ws[TILE];
#pragma unroll
    for (int i = 0; i < TILE; ++i) {  // beyond the end the last one again, which is not stored
      xs[i] = load<VEC>(x + static_cast<int64_t>(min(row + i, rows - 1)) * inputs + k);
      ws[i] = load<VEC>(w + static_cast<int64_t>(min(output + i, outputs - 1)) * inputs + k);
    }
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
#pragma unroll
      for (int i = 0; i < TILE * TILE; ++i) {
        sums[i] += widen(xs[i / TILE][v]) * widen(ws[i % TILE][v]);
      }
    }
  }
  scatter_sums<TILE * TILE, 16>(sums, lane);
  partial[warp][2 * lane] = sums[0];
  partial[warp][2 * lane + 1] = sums[1];
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += blockDim.x) {
    const int m = row + i / TILE, n = output + i % TILE;
    if (m >= rows || n >= outputs) continue;
    A sum = b == nullptr ? A(0) : widen(b[n]);
    for (int part = 0; part < blockDim.x / 32; ++part) sum += partial[part][i];
    y[static_cast<int64_t>(m) * outputs + n] = narrow<T>(sum);
  }
}

template <typename T, int VEC>
__global__ void __launch_bounds__(256)
    linear_backward_input(const T* __restrict__ g, const T* __restrict__ w, int rows, int inputs,
                          int outputs, T* __restrict__ gx) {
  input_tile<T, VEC>(g, w, rows, inputs, outputs, blockIdx.y * TILE, blockIdx.x * 32, gx);
}

template <typename T, int VEC>
__global__ void __launch_bounds__(256)
    linear_backward_weight(const T* __restrict__ g, const T* __restrict__ x, int rows, int inputs,
                           int outputs, T* __restrict__ gw, T* __restrict__ gb) {
  weight_tile<T, VEC>(g, x, rows, inputs, outputs, blockIdx.x, gw, gb);
}

// Both at once: the first blocks compute gx, `across` of them 8 rows, the others gw and gb.
template <typename T, int VEC_G, int VEC_X>
__global__ void __launch_bounds__(256, 2)
    linear_backward(const T* __restrict__ g, const T* __restrict__ x, const T* __restrict__ w,
                    int rows, int inputs, int outputs, T* __restrict__ gx, T* __restrict__ gw,
                    T* __restrict__ gb) {
  const int across = (inputs + 31) / 32, first = across * ((rows + TILE - 1) / TILE);
  const int block = blockIdx.x;
  if (block < first) {
    const int row = block / across * TILE;
    input_tile<T, VEC_G>(g, w, rows, inputs, outputs, row, block % across * 32, gx);
  } else {
    weight_tile<T, VEC_X>(g, x, rows, inputs, outputs, block - first, gw, gb);
  }
}
