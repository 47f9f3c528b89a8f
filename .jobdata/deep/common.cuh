// What every kernel file uses: sizes, accumulators, packs of 16 bytes, reductions.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned int uint32_t;
typedef unsigned short uint16_t;
typedef unsigned char uint8_t;

// The type sums are kept in: float for everything but double.
template <typename T>
struct Accumulator {
  typedef float type;
};
template <>
struct Accumulator<double> {
  typedef double type;
};
template <typename T>
using acc_t = typename Accumulator<T>::type;

// Conversions that say which way they go; T(x) is ambiguous for some of the two-byte types.
template <typename T>
__device__ __forceinline__ acc_t<T> widen(T x) {
  return static_cast<acc_t<T>>(x);
}
template <typename T>
__device__ __forceinline__ T narrow(acc_t<T> x) {
  return static_cast<T>(x);
}
template <>
__device__ __forceinline__ __half narrow<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// N values that are loaded and stored at once; N * sizeof(T) is at most 16 bytes, a power of two,
// and the address is a multiple of it.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  static_assert(sizeof(T) * N <= 16, "a pack is one memory access");
  T values[N];
  __device__ __forceinline__ T& operator[](int i) { return values[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return values[i]; }
};
template <int N, typename T>
__device__ __forceinline__ Pack<T, N> load(const T* __restrict__ from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
template <int N, typename T>
__device__ __forceinline__ void store(T* __restrict__ to, const Pack<T, N>& values) {
  *reinterpret_cast<Pack<T, N>*>(to) = values;
}

struct Sum {
  template <typename A>
  static __device__ __forceinline__ A of(A x, A y) {
    return x + y;
  }
};
// NaN wins, as in the frameworks.
struct Max {
  template <typename A>
  static __device__ __forceinline__ A of(A x, A y) {
    return x > y || x != x ? x : y;
  }
};

// Over the first WIDTH lanes of each group of WIDTH; every lane gets the result.
template <typename R, int WIDTH = 32, typename A>
__device__ __forceinline__ A warp_reduce(A x) {
#pragma unroll
  for (int step = WIDTH / 2; step > 0; step /= 2) {
    x = R::of(x, __shfl_xor_sync(0xffffffffu, x, step, WIDTH));
  }
  return x;
}

// Over a block of THREADS (a multiple of 32, at most 1024); every thread gets the result. `shared`
// holds one value a warp and may be used again at once.
template <typename R, int THREADS, typename A>
__device__ __forceinline__ A block_reduce(A x, A identity, A* shared) {
  static_assert(THREADS % 32 == 0 && THREADS <= 1024, "whole warps");
  constexpr int warps = THREADS / 32;
  x = warp_reduce<R>(x);
  if constexpr (warps == 1) return x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads();
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  x = lane < warps ? shared[lane] : identity;
  return warp_reduce<R>(x);
}

// for (int64_t i : strided over the whole grid)
#define GRID_STRIDE(i, n)                                                            \
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); \
       i += static_cast<int64_t>(gridDim.x) * blockDim.x)
