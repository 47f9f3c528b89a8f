// PTX wrappers: tensor-core products of a warp, the loads that feed them, asynchronous copies.
//
// The layouts are those of the PTX ISA (warp-level matrix instructions, `mma.sync.aligned`). A lane
// is written as `g = lane / 4` (its group) and `t = lane % 4` (its place in the group). A fragment
// is what one lane holds: registers of 32 bits, two values each for the 16-bit types, the lower
// index in the lower half.
//
// Tensor-core types need sm_80. Below, the copies are plain ones, so that kernels that only copy
// run there as well.

// The first 32 bits of a shared-memory pointer, as PTX addresses shared memory.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// ---- asynchronous copies, global -> shared. BYTES is 4, 8 or 16, both addresses are multiples of
// it. Where `wanted` is false the place is filled with zeros and `from` is not read (it should be a
// valid address all the same). Copies belong to the group that the next cp_async_commit() closes;
// cp_async_wait<N>() waits until at most the N youngest groups of this thread are unfinished. What
// other threads copied is visible after a __syncthreads() that follows their wait.
template <int BYTES>
__device__ __forceinline__ void cp_async(void* to, const void* from, bool wanted = true) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "a copy is of 4, 8 or 16 bytes");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const int bytes = wanted ? BYTES : 0;
  if constexpr (BYTES == 16) {  // past L1: the tiles are read from shared memory
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(shared_address(to)),
                 "l"(from), "n"(BYTES), "r"(bytes)
                 : "memory");
  }
#else
  uint32_t* words = reinterpret_cast<uint32_t*>(to);
#pragma unroll
  for (int i = 0; i < BYTES / 4; ++i) {
    words[i] = wanted ? reinterpret_cast<const uint32_t*>(from)[i] : 0u;
  }
#endif
}

__device__ __forceinline__ void cp_async_commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}

template <int N>
__device__ __forceinline__ void cp_async_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
#endif
}

// ---- ldmatrix: N 8x8 matrices of 16-bit values from shared memory. Lane i gives the address of
// row i % 8 of matrix i / 8 (16 bytes, aligned to 16; lanes beyond 8 N are not looked at).
// r[m] is, of matrix m, row g, columns 2t and 2t + 1. Read as 32-bit values: row g, column t of an
// 8x4 matrix, which is how it serves tf32.
template <int N>
__device__ __forceinline__ void ldmatrix(uint32_t (&r)[N], const void* row) {
  static_assert(N == 1 || N == 2 || N == 4, "ldmatrix loads 1, 2 or 4 matrices");
  if constexpr (N == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];\n"
                 : "=r"(r[0])
                 : "r"(shared_address(row))
                 : "memory");
  } else if constexpr (N == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];\n"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row))
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
  }
}

// The same, each matrix transposed on the way: r[m] is, of matrix m, rows 2t and 2t + 1, column g.
template <int N>
__device__ __forceinline__ void ldmatrix_transposed(uint32_t (&r)[N], const void* row) {
  static_assert(N == 1 || N == 2 || N == 4, "ldmatrix loads 1, 2 or 4 matrices");
  if constexpr (N == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];\n"
                 : "=r"(r[0])
                 : "r"(shared_address(row))
                 : "memory");
  } else if constexpr (N == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\n"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row))
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
  }
}

// ---- tf32: a float of which the tensor core reads 8 bits of exponent and 10 of mantissa. Rounded
// to nearest, ties away from zero; NaN and infinity stay. The tensor core itself would cut off.
__device__ __forceinline__ uint32_t to_tf32(float x) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(bits) : "f"(x));
  return bits;
}

// ---- products: c += a b, with a of 16 rows, b of 8 columns, c (16 x 8) in float32.
//
// c in every case: c[0] (g, 2t), c[1] (g, 2t + 1), c[2] (g + 8, 2t), c[3] (g + 8, 2t + 1).
//
// mma_tf32 (k = 8): a[0] (g, t), a[1] (g + 8, t), a[2] (g, t + 4), a[3] (g + 8, t + 4), as row and
// column of a; b[0] (t, g), b[1] (t + 4, g), as row (k) and column (n) of b.
// With a stored by rows, ldmatrix<4> gives a from the matrices (rows 0-7, k 0-3), (rows 8-15,
// k 0-3), (rows 0-7, k 4-7), (rows 8-15, k 4-7); with b stored by columns (k next to each other),
// ldmatrix<2> gives b from (n 0-7, k 0-3), (n 0-7, k 4-7).
__device__ __forceinline__ void mma_tf32(float (&c)[4], const uint32_t (&a)[4],
                                         const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// mma_16<T>, T = __half or __nv_bfloat16 (k = 16): a[0] (g, 2t..2t+1), a[1] (g + 8, 2t..2t+1),
// a[2] (g, 2t+8..2t+9), a[3] (g + 8, 2t+8..2t+9), as row and columns of a; b[0] (2t..2t+1, g),
// b[1] (2t+8..2t+9, g), as rows (k) and column (n) of b.
// With a stored by rows, ldmatrix<4> gives a from the matrices (rows 0-7, k 0-7), (rows 8-15,
// k 0-7), (rows 0-7, k 8-15), (rows 8-15, k 8-15); with a stored by columns, ldmatrix_transposed<4>
// from (k 0-7, rows 0-7), (k 0-7, rows 8-15), (k 8-15, rows 0-7), (k 8-15, rows 8-15). With b stored
// by columns, ldmatrix<2> gives b from (n, k 0-7), (n, k 8-15); with b stored by rows,
// ldmatrix_transposed<2> from (k 0-7, n), (k 8-15, n).
// c's two registers of a row, narrowed and packed in this order, are a's registers of a product
// that follows: c of columns n, n + 8 makes a[0], a[1] (columns n) and a[2], a[3] (columns n + 8).
template <typename T>
__device__ __forceinline__ void mma_16(float (&c)[4], const uint32_t (&a)[4],
                                       const uint32_t (&b)[2]);
template <>
__device__ __forceinline__ void mma_16<__half>(float (&c)[4], const uint32_t (&a)[4],
                                               const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
__device__ __forceinline__ void mma_16<__nv_bfloat16>(float (&c)[4], const uint32_t (&a)[4],
                                                      const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two floats as one register of T, `low` in the lower half.
template <typename T>
__device__ __forceinline__ uint32_t pack_16(float low, float high);
template <>
__device__ __forceinline__ uint32_t pack_16<__half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
template <>
__device__ __forceinline__ uint32_t pack_16<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
