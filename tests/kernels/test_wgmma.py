"""Hopper's wrappers: products of a warpgroup by every operand layout, boxes by the copy engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kernels.gpu import needs_gpu, on_device

pytestmark = needs_gpu

# One warpgroup multiplies a (64, k) by b (k, N), k of 128 bytes, from shared memory that it fills
# by hand: a[m][k] and b[n][k], or where MN-major a[k][m] and b[k][n]. HELD: a from registers.
SOURCE = """
#include "common.cuh"
#include "mma.cuh"
#include "wgmma.cuh"

template <typename T, int N, bool HELD, bool A_MN, bool B_MN>
__global__ void __launch_bounds__(128) product(const T* a, const T* b, float* c) {
  constexpr int K = 128 / sizeof(T), COLUMNS = 128 / sizeof(T);
  extern __shared__ __align__(1024) char tiles[];
  char* const bs = tiles + 64 * 128;
  for (int i = threadIdx.x; i < 64 * K; i += 128) {
    const int row = i / K, column = i % K;
    *reinterpret_cast<T*>(tiles + swizzled_128(row, column * sizeof(T))) = a[i];
  }
  for (int i = threadIdx.x; i < N * K; i += 128) {
    const int row = B_MN ? i / N : i / K, column = B_MN ? i % N : i % K;
    const int panel = B_MN ? column / COLUMNS : 0;
    *reinterpret_cast<T*>(bs + panel * K * 128 +
                          swizzled_128(row, column % COLUMNS * sizeof(T))) = b[i];
  }
  fence_shared();
  __syncthreads();
  float d[N / 2];
  const uint64_t ad = A_MN ? mn_major(tiles, K * 128) : k_major(tiles);
  const uint64_t bd = B_MN ? mn_major(bs, K * 128) : k_major(bs);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t fragments[4][4];
  if constexpr (HELD) {
    for (int step = 0; step < 4; ++step) {
      const int row = warp * 16 + lane % 16;
      ldmatrix(fragments[step], tiles + swizzled_128(row, step * 32 + lane / 16 * 16));
    }
  }
  hold(d);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    const uint64_t bn = advance(bd, step * (B_MN ? 2048 : 32));
    if constexpr (HELD) {
      wgmma<T, B_MN>(d, fragments[step], bn, step > 0);
    } else {
      wgmma<T, A_MN, B_MN>(d, advance(ad, step * (A_MN ? 2048 : 32)), bn, step > 0);
    }
  }
  wgmma_commit();
  wgmma_wait<0>();
  hold(d);
  for (int i = 0; i < N / 2; ++i) {
    const int row = warp * 16 + lane / 4 + i / 2 % 2 * 8;
    c[row * N + i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
  }
}

// One box of (1, 2, 4, 32) pixels and channels of x, from the coordinates given.
template <typename T>
__global__ void box(const __grid_constant__ TensorMap map, int c, int w, int h, int n, T* y) {
  constexpr int CHANNELS = 128 / sizeof(T);
  extern __shared__ __align__(1024) char tiles[];
  __shared__ Barrier full;
  if (threadIdx.x == 0) {
    make_barrier(&full, 1);
    fence_barriers();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive_expecting(&full, 8 * 128);
    load_box(tiles, map, &full, c, w, h, n);
  }
  wait(&full, 0);
  for (int i = threadIdx.x; i < 8 * CHANNELS; i += blockDim.x) {
    const char* from = tiles + swizzled_128(i / CHANNELS, i % CHANNELS * sizeof(T));
    y[i] = *reinterpret_cast<const T*>(from);
  }
}
"""


def kernel(folder: Path, name: str, params: tuple[str, ...]) -> Any:
    """A kernel of the text above, compiled for sm_90a as its file's name says."""
    import cupy

    from tensorflow_lite_clone.kernels.kernel import Kernel

    if int(cupy.cuda.Device().compute_capability) // 10 != 9:
        pytest.skip("these instructions are Hopper's (compute capability 9)")
    path = folder / "sample_sm90.cu"
    path.write_text(SOURCE)
    return Kernel(path, name, params=params)


CASES = [(name, n, False, False, False) for name in ("float32", "float16", "bfloat16")
         for n in (32, 64, 96, 128, 192, 256)]  # fmt: skip
CASES += [("float32", 64, True, False, False), ("bfloat16", 256, True, False, False)]
CASES += [("float16", 64, True, False, True), ("bfloat16", 128, True, False, True)]
CASES += [(name, n, False, a, b) for name in ("float16", "bfloat16") for n in (64, 256)
          for a, b in ((True, False), (False, True), (True, True))]  # fmt: skip


@pytest.mark.parametrize(("name", "n", "held", "a_mn", "b_mn"), CASES)
def test_product(name: str, n: int, held: bool, a_mn: bool, b_mn: bool, tmp_path: Path) -> None:
    product = kernel(tmp_path, "product", ("T", "N", "HELD", "A_MN", "B_MN"))
    k = 32 if name == "float32" else 64
    # whole numbers: exact in every type, and tf32 cuts nothing off
    random = np.random.default_rng(0)
    a, b = random.integers(-8, 9, (64, k)) * 1.0, random.integers(-8, 9, (k, n)) * 1.0
    given_a = on_device(np.ascontiguousarray(a.T if a_mn else a), name)
    given_b = on_device(np.ascontiguousarray(b if b_mn else b.T), name)
    c = on_device(np.full((64, n), np.nan), "float32")
    shared = (64 + n) * 128
    product[given_a.dtype, n, held, a_mn, b_mn](1, 128, given_a, given_b, c, shared=shared)
    np.testing.assert_array_equal(c.get(), a @ b)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("start", [(0, 0, 0, 0), (0, -1, -1, 1), (32, 3, 4, 0), (0, 1, 2, 1)])
def test_box(name: str, start: tuple[int, ...], tmp_path: Path) -> None:
    box = kernel(tmp_path, "box", ("T",))
    from tensorflow_lite_clone.backends.cupy.tensor_maps import tensor_map

    wide = 32 if name == "float32" else 64
    n, h, w, c = 2, 5, 6, 2 * wide
    x = np.random.default_rng(0).integers(-8, 9, (n, h, w, c)) * 1.0
    array = on_device(x, name)
    strides = (c, c * w, c * w * h)
    boxes = tensor_map(array, (c, w, h, n), strides, (wide, 4, 2, 1))
    y = on_device(np.full((2, 4, wide), np.nan), name)
    box[array.dtype](1, 32, boxes, *start, y, shared=1024)
    padded = np.zeros((n, h + 8, w + 8, c + 64))
    padded[:, 4 : 4 + h, 4 : 4 + w, :c] = x
    first, across, down, image = start
    expected = padded[image, 4 + down : 6 + down, 4 + across : 8 + across, first : first + wide]
    np.testing.assert_array_equal(y.astype(np.float32).get(), expected)
