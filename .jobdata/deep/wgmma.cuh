// PTX wrappers for Hopper: products of a warpgroup from shared memory (`wgmma`), barriers that
// count bytes (`mbarrier`), tiles by the copy engine (TMA). For files named `*_sm90.cu` alone,
// which are compiled for sm_90a. `mma.cuh` has the wrappers of a warp; shared_address comes from there.
//
// Facts: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions" and "Data Movement".

// ---- tiles in shared memory
//
// Rows of 128 bytes, 8 of which are an atom of 1024 bytes; within an atom the 16-byte pieces of row
// r are exchanged: piece p lies at place p ^ (r % 8). Tiles begin at multiples of 1024 bytes. The
// copy engine writes this with its 128-byte swizzle; by hand it is swizzled_128(row, byte).
__device__ __forceinline__ int swizzled_128(int row, int byte) {
  return row * 128 + (byte ^ (row % 8 * 16));
}

// K-major: a row is one m (or n), its 128 bytes are 32 tf32 or 64 16-bit values along k; the rows
// follow each other. One product is 32 bytes along k: the next is `+ 32 bytes` (up to 3 times).
//
// MN-major (16-bit types only): a row is one k, its 128 bytes are 64 values along m (or n); the
// rows follow each other, `panel` bytes further come the next 64 values of m (or n). One product is
// 16 rows: the next is `+ 2048 bytes`.
__device__ __forceinline__ uint64_t make_descriptor(const void* tile, int leading, int stride) {
  const uint64_t start = (shared_address(tile) & 0x3ffff) >> 4;
  return start | static_cast<uint64_t>(leading >> 4) << 16 |
         static_cast<uint64_t>(stride >> 4) << 32 | 1ull << 62;
}
__device__ __forceinline__ uint64_t k_major(const void* tile) {
  return make_descriptor(tile, 16, 1024);
}
__device__ __forceinline__ uint64_t mn_major(const void* tile, int panel) {
  return make_descriptor(tile, panel, 1024);
}
// A descriptor `bytes` further on.
__device__ __forceinline__ uint64_t advance(uint64_t descriptor, int bytes) {
  return descriptor + (bytes >> 4);
}

// ---- order: wgmma_fence() before the first product after registers or shared memory were written
// by other instructions; commit; wait until at most N groups are unfinished. What ordinary stores
// and cp.async wrote to shared memory is seen by wgmma and by the copy engine only after
// fence_shared() in the threads that wrote, and a barrier.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
template <int N>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory");
}
// Keeps the compiler from moving what reads or writes accumulators across this place.
template <int N>
__device__ __forceinline__ void hold(float (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
__device__ __forceinline__ void fence_shared() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

// ---- products of a warpgroup: d (64 x N) = a (64 x k) b (k x N) [+ d], k is 32 bytes.
//
// wgmma<T, A_MN, B_MN>(d, a, b, accumulate): T = float reads tf32 (cut off, not rounded); A_MN and
// B_MN: MN-major, 16-bit types only. a: a descriptor, or the registers of mma.cuh's fragment of the
// warp's 16 rows. d has N / 2 registers: of warp w, lane 4 g + t, d[4 j + i] is row
// 16 w + g + i / 2 * 8, column 8 j + 2 t + i % 2.
// Operands and their names in the text, for the numbers of registers that are served.
#define TLC_NAMES_0 \
  "%0, %1, %2, %3, %4, %5, %6, %7, " \
  "%8, %9, %10, %11, %12, %13, %14, %15"
#define TLC_NAMES_16 \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define TLC_NAMES_32 \
  "%32, %33, %34, %35, %36, %37, %38, %39, " \
  "%40, %41, %42, %43, %44, %45, %46, %47"
#define TLC_NAMES_48 \
  "%48, %49, %50, %51, %52, %53, %54, %55, " \
  "%56, %57, %58, %59, %60, %61, %62, %63"
#define TLC_NAMES_64 \
  "%64, %65, %66, %67, %68, %69, %70, %71, " \
  "%72, %73, %74, %75, %76, %77, %78, %79"
#define TLC_NAMES_80 \
  "%80, %81, %82, %83, %84, %85, %86, %87, " \
  "%88, %89, %90, %91, %92, %93, %94, %95"
#define TLC_NAMES_96 \
  "%96, %97, %98, %99, %100, %101, %102, %103, " \
  "%104, %105, %106, %107, %108, %109, %110, %111"
#define TLC_NAMES_112 \
  "%112, %113, %114, %115, %116, %117, %118, %119, " \
  "%120, %121, %122, %123, %124, %125, %126, %127"
#define TLC_FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define TLC_SIXTEEN(i) TLC_FOUR(i), TLC_FOUR(i + 4), TLC_FOUR(i + 8), TLC_FOUR(i + 12)
#define TLC_LIST_16 TLC_NAMES_0
#define TLC_REGISTERS_16 TLC_SIXTEEN(0)
#define TLC_LIST_32 TLC_NAMES_0 ", " TLC_NAMES_16
#define TLC_REGISTERS_32 TLC_SIXTEEN(0), TLC_SIXTEEN(16)
#define TLC_LIST_48 TLC_NAMES_0 ", " TLC_NAMES_16 ", " TLC_NAMES_32
#define TLC_REGISTERS_48 TLC_SIXTEEN(0), TLC_SIXTEEN(16), TLC_SIXTEEN(32)
#define TLC_LIST_64 TLC_NAMES_0 ", " TLC_NAMES_16 ", " TLC_NAMES_32 ", " TLC_NAMES_48
#define TLC_REGISTERS_64 \
  TLC_SIXTEEN(0), TLC_SIXTEEN(16), TLC_SIXTEEN(32), TLC_SIXTEEN(48)
#define TLC_LIST_96 \
  TLC_NAMES_0 ", " TLC_NAMES_16 ", " TLC_NAMES_32 ", " TLC_NAMES_48 ", " \
  TLC_NAMES_64 ", " TLC_NAMES_80
#define TLC_REGISTERS_96 \
  TLC_SIXTEEN(0), TLC_SIXTEEN(16), TLC_SIXTEEN(32), TLC_SIXTEEN(48), \
  TLC_SIXTEEN(64), TLC_SIXTEEN(80)
#define TLC_LIST_128 \
  TLC_NAMES_0 ", " TLC_NAMES_16 ", " TLC_NAMES_32 ", " TLC_NAMES_48 ", " \
  TLC_NAMES_64 ", " TLC_NAMES_80 ", " TLC_NAMES_96 ", " TLC_NAMES_112
#define TLC_REGISTERS_128 \
  TLC_SIXTEEN(0), TLC_SIXTEEN(16), TLC_SIXTEEN(32), TLC_SIXTEEN(48), \
  TLC_SIXTEEN(64), TLC_SIXTEEN(80), TLC_SIXTEEN(96), TLC_SIXTEEN(112)
// p says whether d is added to; A, B, P and the transposes are places among the operands.
#define TLC_WGMMA(COUNT, SHAPE, KIND, A, B, P, TAIL, ...)                                        \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\n"                                     \
               "wgmma.mma_async.sync.aligned." SHAPE KIND " {" TLC_LIST_##COUNT "}, " A ", " B    \
               ", p, 1, 1" TAIL ";\n}\n"                                                          \
               : TLC_REGISTERS_##COUNT                                                            \
               : __VA_ARGS__)
#define TLC_SHARED(COUNT, SHAPE, A, B, P, TA, TB)                                                 \
  if constexpr (sizeof(T) == 4) {                                                                 \
    TLC_WGMMA(COUNT, SHAPE, "k8.f32.tf32.tf32", A, B, P, "", "l"(a), "l"(b), "r"(add));           \
  } else if constexpr (IS_HALF<T>) {                                                              \
    TLC_WGMMA(COUNT, SHAPE, "k16.f32.f16.f16", A, B, P, ", " TA ", " TB, "l"(a), "l"(b),          \
              "r"(add), "n"(static_cast<int>(A_MN)), "n"(static_cast<int>(B_MN)));                \
  } else {                                                                                        \
    TLC_WGMMA(COUNT, SHAPE, "k16.f32.bf16.bf16", A, B, P, ", " TA ", " TB, "l"(a), "l"(b),        \
              "r"(add), "n"(static_cast<int>(A_MN)), "n"(static_cast<int>(B_MN)));                \
  }
#define TLC_HELD(COUNT, SHAPE, A0, A1, A2, A3, B, P, TB)                                          \
  if constexpr (sizeof(T) == 4) {                                                                 \
    TLC_WGMMA(COUNT, SHAPE, "k8.f32.tf32.tf32", "{" A0 ", " A1 ", " A2 ", " A3 "}", B, P, "",      \
              "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                      \
  } else if constexpr (IS_HALF<T>) {                                                              \
    TLC_WGMMA(COUNT, SHAPE, "k16.f32.f16.f16", "{" A0 ", " A1 ", " A2 ", " A3 "}", B, P, ", " TB, \
              "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add),                       \
              "n"(static_cast<int>(B_MN)));                                                       \
  } else {                                                                                        \
    TLC_WGMMA(COUNT, SHAPE, "k16.f32.bf16.bf16", "{" A0 ", " A1 ", " A2 ", " A3 "}", B, P,        \
              ", " TB, "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add),              \
              "n"(static_cast<int>(B_MN)));                                                       \
  }
template <typename T>
constexpr bool IS_HALF = false;
template <>
constexpr bool IS_HALF<__half> = true;

template <typename T, bool A_MN = false, bool B_MN = false, int COUNT>
__device__ __forceinline__ void wgmma(float (&d)[COUNT], uint64_t a, uint64_t b,
                                      bool accumulate) {
  static_assert(sizeof(T) == 2 || !(A_MN || B_MN), "tf32 operands are K-major");
  const int add = accumulate;
  if constexpr (COUNT == 16) {
    TLC_SHARED(16, "m64n32", "%16", "%17", "%18", "%19", "%20");
  } else if constexpr (COUNT == 32) {
    TLC_SHARED(32, "m64n64", "%32", "%33", "%34", "%35", "%36");
  } else if constexpr (COUNT == 48) {
    TLC_SHARED(48, "m64n96", "%48", "%49", "%50", "%51", "%52");
  } else if constexpr (COUNT == 64) {
    TLC_SHARED(64, "m64n128", "%64", "%65", "%66", "%67", "%68");
  } else if constexpr (COUNT == 96) {
    TLC_SHARED(96, "m64n192", "%96", "%97", "%98", "%99", "%100");
  } else if constexpr (COUNT == 128) {
    TLC_SHARED(128, "m64n256", "%128", "%129", "%130", "%131", "%132");
  } else {
    static_assert(COUNT == 16, "32, 64, 96, 128, 192 or 256 columns");
  }
}
template <typename T, bool B_MN = false, int COUNT>
__device__ __forceinline__ void wgmma(float (&d)[COUNT], const uint32_t (&a)[4], uint64_t b,
                                      bool accumulate) {
  static_assert(sizeof(T) == 2 || !B_MN, "tf32 operands are K-major");
  const int add = accumulate;
  if constexpr (COUNT == 16) {
    TLC_HELD(16, "m64n32", "%16", "%17", "%18", "%19", "%20", "%21", "%22");
  } else if constexpr (COUNT == 32) {
    TLC_HELD(32, "m64n64", "%32", "%33", "%34", "%35", "%36", "%37", "%38");
  } else if constexpr (COUNT == 48) {
    TLC_HELD(48, "m64n96", "%48", "%49", "%50", "%51", "%52", "%53", "%54");
  } else if constexpr (COUNT == 64) {
    TLC_HELD(64, "m64n128", "%64", "%65", "%66", "%67", "%68", "%69", "%70");
  } else if constexpr (COUNT == 96) {
    TLC_HELD(96, "m64n192", "%96", "%97", "%98", "%99", "%100", "%101", "%102");
  } else if constexpr (COUNT == 128) {
    TLC_HELD(128, "m64n256", "%128", "%129", "%130", "%131", "%132", "%133", "%134");
  } else {
    static_assert(COUNT == 16, "32, 64, 96, 128, 192 or 256 columns");
  }
}
#undef TLC_WGMMA
#undef TLC_SHARED
#undef TLC_HELD

// ---- registers of a warpgroup whose role needs more or fewer than the kernel was compiled with:
// all its warps call it, COUNT is a multiple of 8, the launch bounds name threads and blocks.
template <int COUNT>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(COUNT));
}
template <int COUNT>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(COUNT));
}

// ---- barriers of a part of the block: `id` 1 to 15 (0 is __syncthreads), `threads` take part.
__device__ __forceinline__ void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

// ---- mbarrier: 8 bytes of shared memory that count arrivals and bytes, in phases. One thread
// makes them, then fence_barriers() and __syncthreads(). A phase ends when `count` arrivals and all
// expected bytes are there; wait(parity) returns when the phase of that parity (0, 1, 0, ...) is
// over.
typedef uint64_t Barrier;
__device__ __forceinline__ void make_barrier(Barrier* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(shared_address(barrier)),
               "r"(count)
               : "memory");
}
__device__ __forceinline__ void fence_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}
__device__ __forceinline__ void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(shared_address(barrier))
               : "memory");
}
__device__ __forceinline__ void arrive_expecting(Barrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void wait(Barrier* barrier, int parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\n"
      "bra again;\n"
      "over:\n}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// ---- the copy engine. A TensorMap is encoded on the host (backends/cupy/tensor_maps.py) and is a
// parameter `const __grid_constant__ TensorMap map`. One thread asks for a box at coordinates
// (innermost first); what lies outside of the tensor is filled with zeros; the box's bytes are
// counted by the barrier. `to` is a multiple of 1024 bytes for the 128-byte swizzle.
struct alignas(64) TensorMap {
  uint64_t words[16];
};
__device__ __forceinline__ void load_box(void* to, const TensorMap& map, Barrier* barrier, int x,
                                         int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5}], [%2];\n" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ __forceinline__ void load_box(void* to, const TensorMap& map, Barrier* barrier, int x,
                                         int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6}], [%2];\n" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}
