"""The tensor-core wrappers: products by every way of loading fragments, copies with zeros."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kernels.gpu import needs_gpu, on_device

pytestmark = needs_gpu

# One warp multiplies a (16, k) by b (k, 8) of 32 bytes along k. BY_ROWS: a[m][k], b[n][k] in shared
# memory, by ldmatrix; else a[k][m], b[k][n], by ldmatrix_transposed or single words (tf32).
SOURCE = """
#include "common.cuh"
#include "mma.cuh"

template <typename T, bool BY_ROWS>
__global__ void product(const T* a, const T* b, float* c) {
  constexpr int K = 32 / sizeof(T);
  __shared__ __align__(16) T as[16 * K];
  __shared__ __align__(16) T bs[8 * K];
  const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  for (int i = lane; i < 16 * K; i += 32) as[i] = a[i];
  for (int i = lane; i < 8 * K; i += 32) bs[i] = b[i];
  __syncthreads();
  float sum[4] = {0.f, 0.f, 0.f, 0.f};
  uint32_t fa[4], fb[2];
  if constexpr (BY_ROWS) {
    ldmatrix(fa, as + lane % 16 * K + lane / 16 * (K / 2));
    ldmatrix(fb, bs + lane % 8 * K + lane / 8 % 2 * (K / 2));
  } else if constexpr (sizeof(T) == 2) {
    ldmatrix_transposed(fa, as + (lane / 16 * 8 + lane % 8) * 16 + lane / 8 % 2 * 8);
    ldmatrix_transposed(fb, bs + (lane / 8 % 2 * 8 + lane % 8) * 8);
  } else {
    for (int i = 0; i < 4; ++i) {
      fa[i] = *reinterpret_cast<uint32_t*>(as + (t + i / 2 * 4) * 16 + g + i % 2 * 8);
    }
    for (int i = 0; i < 2; ++i) fb[i] = *reinterpret_cast<uint32_t*>(bs + (t + i * 4) * 8 + g);
  }
  if constexpr (sizeof(T) == 4) {
    for (int i = 0; i < 4; ++i) fa[i] = to_tf32(__uint_as_float(fa[i]));
    for (int i = 0; i < 2; ++i) fb[i] = to_tf32(__uint_as_float(fb[i]));
    mma_tf32(sum, fa, fb);
  } else {
    mma_16<T>(sum, fa, fb);
  }
  for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
}

template <int BYTES>
__global__ void copies(const float* x, int count, float* y) {
  __shared__ __align__(16) float shared[32 * 4];
  constexpr int N = BYTES / 4;
  for (int i = 0; i < N; ++i) shared[threadIdx.x * N + i] = -1.f;
  cp_async<BYTES>(shared + threadIdx.x * N, x + threadIdx.x * N, threadIdx.x < count);
  cp_async_commit();
  cp_async_wait<0>();
  __syncthreads();
  for (int i = 0; i < N; ++i) y[threadIdx.x * N + i] = shared[(31 - threadIdx.x) * N + i];
}

template <typename T>
__global__ void packs(const float* x, T* y) {
  const int i = threadIdx.x;
  reinterpret_cast<uint32_t*>(y)[i] = pack_16<T>(x[2 * i], x[2 * i + 1]);
}
"""


def kernel(folder: Path, name: str, *params: str) -> Any:
    pytest.importorskip("cupy")
    from tensorflow_lite_clone.backends.cupy.kernel import Kernel

    path = folder / "mma.cu"
    if not path.exists():
        path.write_text(SOURCE)
    return Kernel(path, name, params=params)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("by_rows", [True, False])
def test_products(tmp_path: Path, dtype: str, by_rows: bool) -> None:
    import cupy

    k = 8 if dtype == "float32" else 16
    random = np.random.default_rng(0)
    a, b = random.integers(-8, 9, (16, k)), random.integers(-8, 9, (k, 8))  # exact in all types
    given = [a, b.T] if by_rows else [a.T, b]
    x, w = [on_device(np.ascontiguousarray(v, dtype=np.float32), dtype) for v in given]
    c = cupy.full((16, 8), np.nan, np.float32)
    kernel(tmp_path, "product", "T", "BY_ROWS")[x.dtype, by_rows](1, 32, x, w, c)
    np.testing.assert_array_equal(c.get(), a @ b)


def test_tf32_rounds_to_nearest(tmp_path: Path) -> None:
    import cupy

    a, b = np.zeros((16, 8), np.float32), np.zeros((8, 8), np.float32)
    a[:, 0] = 1 + np.arange(16) * 2.0**-13  # 8 steps of float32's make one of tf32's
    b[0] = 1
    c = cupy.full((16, 8), np.nan, np.float32)
    x, w = cupy.asarray(a), cupy.asarray(np.ascontiguousarray(b.T))
    kernel(tmp_path, "product", "T", "BY_ROWS")[x.dtype, True](1, 32, x, w, c)
    expected = 1 + np.floor(np.arange(16) / 8 + 0.5) * 2.0**-10  # ties away from zero
    np.testing.assert_array_equal(c.get()[:, 3], expected.astype(np.float32))


@pytest.mark.parametrize("size", [4, 8, 16])
def test_copies_fill_with_zeros(tmp_path: Path, size: int) -> None:
    import cupy

    n = size // 4
    x = cupy.arange(32 * n, dtype=np.float32) + 1
    y = cupy.full(32 * n, np.nan, np.float32)
    kernel(tmp_path, "copies", "BYTES")[size](1, 32, x, 11, y)
    expected = np.where(np.arange(32)[:, None] < 11, x.get().reshape(32, n), 0)[::-1]
    np.testing.assert_array_equal(y.get().reshape(32, n), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_packed_pairs(tmp_path: Path, dtype: str) -> None:
    import cupy

    x = on_device(np.random.default_rng(1).normal(size=64), "float32")
    y = cupy.zeros_like(on_device(np.zeros(64), dtype))
    kernel(tmp_path, "packs", "T")[y.dtype](1, 32, x, y)
    assert bool((y.view(np.uint16) == x.astype(y.dtype).view(np.uint16)).all())
