// Means and sums of squared deviations, joined without cancellation (Chan et al., 1979), and what
// the normalisations share besides.

__device__ __forceinline__ float square_root(float x) { return sqrtf(x); }
__device__ __forceinline__ double square_root(double x) { return sqrt(x); }

// Of `count` values: their mean, and the sum of their squared deviations from it.
template <typename A>
struct Moments {
  A count, mean, square;
};

template <typename A>
__device__ __forceinline__ Moments<A> joined(const Moments<A>& a, const Moments<A>& b) {
  if (b.count == A(0)) return a;
  if (a.count == A(0)) return b;
  const A count = a.count + b.count, share = b.count / count, step = b.mean - a.mean;
  return {count, a.mean + step * share, a.square + b.square + step * step * a.count * share};
}

// Of the first `count` of `values`; the others are 0.
template <int N, typename A>
__device__ __forceinline__ Moments<A> moments_of(const A (&values)[N], int count) {
  A sum = 0, square = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) sum += values[i];
  const A mean = sum / A(count > 0 ? count : 1);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const A step = i < count ? values[i] - mean : A(0);
    square += step * step;
  }
  return {A(count), mean, square};
}

// Over a warp, in an order that does not vary; every lane gets the result.
template <typename A>
__device__ __forceinline__ Moments<A> warp_joined(Moments<A> m) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const Moments<A> other = {__shfl_down_sync(0xffffffffu, m.count, step),
                              __shfl_down_sync(0xffffffffu, m.mean, step),
                              __shfl_down_sync(0xffffffffu, m.square, step)};
    m = joined(m, other);
  }
  return {__shfl_sync(0xffffffffu, m.count, 0), __shfl_sync(0xffffffffu, m.mean, 0),
          __shfl_sync(0xffffffffu, m.square, 0)};
}

// Over a block of THREADS; every thread gets the result. `shared` holds 3 values a warp, and may
// be used again after a barrier.
template <int THREADS, typename A>
__device__ __forceinline__ Moments<A> block_joined(Moments<A> m, A* shared) {
  static_assert(THREADS % 32 == 0 && THREADS <= 1024, "whole warps");
  constexpr int warps = THREADS / 32;
  m = warp_joined(m);
  if constexpr (warps == 1) return m;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) {
    shared[3 * warp] = m.count;
    shared[3 * warp + 1] = m.mean;
    shared[3 * warp + 2] = m.square;
  }
  __syncthreads();
  m = {A(0), A(0), A(0)};
  if (lane < warps) m = {shared[3 * lane], shared[3 * lane + 1], shared[3 * lane + 2]};
  return warp_joined(m);
}

// N values as accumulators, in accesses of at most 16 bytes; `from` is aligned to them.
template <int N, typename A, typename T>
__device__ __forceinline__ void load_wide(const T* __restrict__ from, A (&to)[N]) {
  constexpr int most = 16 / static_cast<int>(sizeof(T)), part = N < most ? N : most;
#pragma unroll
  for (int i = 0; i < N; i += part) {
    const Pack<T, part> pack = load<part>(from + i);
#pragma unroll
    for (int j = 0; j < part; ++j) to[i + j] = A(widen(pack[j]));
  }
}

// Rows a block works on at once.
template <int LANES>
struct Rows {
  static_assert(LANES <= 32 ? (LANES & (LANES - 1)) == 0 && LANES > 0 : LANES % 32 == 0, "lanes");
  static constexpr int at_once = LANES <= 32 ? 256 / LANES : 1;
  static constexpr int threads = LANES <= 32 ? 256 : LANES;
};

// The sum over the threads of one row; every one of them gets it.
template <int LANES, typename A>
__device__ __forceinline__ A row_sum(A x, A* shared) {
  if constexpr (LANES <= 32) {
    return warp_reduce<Sum, LANES>(x);
  } else {
    return block_reduce<Sum, LANES>(x, A(0), shared);
  }
}

// Two sums at once. `shared` alternates between two places from call to call, so that one barrier
// is enough.
template <int LANES, typename A>
__device__ __forceinline__ void row_sums(A& x, A& y, A* shared) {
  if constexpr (LANES <= 32) {
    x = warp_reduce<Sum, LANES>(x);
    y = warp_reduce<Sum, LANES>(y);
  } else {
    constexpr int warps = LANES / 32;
    x = warp_reduce<Sum>(x);
    y = warp_reduce<Sum>(y);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) {
      shared[warp] = x;
      shared[32 + warp] = y;
    }
    __syncthreads();
    x = warp_reduce<Sum>(lane < warps ? shared[lane] : A(0));
    y = warp_reduce<Sum>(lane < warps ? shared[32 + lane] : A(0));
  }
}
