// Softmax's sums in one pass: the largest value so far, and the sum of exponentials relative to it
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). Rows are read in
// 16-byte packs from wherever they start.

__device__ __forceinline__ float infinity(float) { return __int_as_float(0x7f800000); }
__device__ __forceinline__ double infinity(double) {
  return __longlong_as_double(0x7ff0000000000000ll);
}

// What exponentials are taken relative to: the largest value, or 0 where that is infinite.
template <typename A>
__device__ __forceinline__ A base_of(A top) {
  return isinf(top) ? A(0) : top;
}
// What a sum relative to `from` is multiplied with when it becomes one relative to `to` >= from.
template <typename A>
__device__ __forceinline__ A rescale(A from, A to) {
  return from == to ? A(1) : exp(from - to);
}

template <typename A>
struct Online {
  A top, sum;  // sum of exp(x - base_of(top)); NaN when a value is

  static __device__ __forceinline__ Online none() { return {-infinity(A(0)), A(0)}; }

  template <int N>
  __device__ __forceinline__ void add(const A (&x)[N]) {
    A most = top;
#pragma unroll
    for (int i = 0; i < N; ++i) most = fmax(most, x[i]);
    const A base = base_of(most);
    sum *= rescale(top, most);
    top = most;
#pragma unroll
    for (int i = 0; i < N; ++i) sum += exp(x[i] - base);
  }
  __device__ __forceinline__ void merge(const Online& other) {
    const A most = fmax(top, other.top);
    sum = sum * rescale(top, most) + other.sum * rescale(other.top, most);
    top = most;
  }
  // log(sum(exp(x))), with infinities as the limits are.
  __device__ __forceinline__ A logarithm() const { return base_of(top) + log(sum); }
  // The same, NaN where the largest value is infinite, as x - max(x) makes it.
  __device__ __forceinline__ A strict_logarithm() const { return (top - top) + logarithm(); }
};

// Over groups of WIDTH threads: part of a warp, or the whole block. Every thread gets the result.
template <typename R, int WIDTH, typename A>
__device__ __forceinline__ A group_reduce(A x, A identity, A* shared) {
  if constexpr (WIDTH <= 32) {
    return warp_reduce<R, WIDTH>(x);
  } else {
    return block_reduce<R, WIDTH>(x, identity, shared);
  }
}
template <int WIDTH, typename A>
__device__ __forceinline__ Online<A> group_reduce(Online<A> x, A* shared) {
  const A top = group_reduce<Max, WIDTH>(x.top, -infinity(A(0)), shared);
  const A sum = group_reduce<Sum, WIDTH>(x.sum * rescale(x.top, top), A(0), shared);
  return {top, sum};
}

// The elements [begin, end) of a row: single ones up to `head`, packs up to `tail`, single ones.
template <typename T, int VEC>
struct Span {
  int64_t begin, end, head, tail;

  __device__ __forceinline__ Span(const T* row, int64_t begin_, int64_t end_)
      : begin(begin_), end(end_) {
    const uint64_t address = reinterpret_cast<uint64_t>(row + begin) / sizeof(T);
    const int64_t before = (VEC - address % VEC) % VEC;
    head = begin + before < end ? begin + before : end;
    tail = head + (end - head) / VEC * VEC;
  }
};

// use.at<N>(i) for elements i to i + N - 1, aligned for packs of N, by THREADS threads.
template <int THREADS, bool BACKWARDS, typename T, int VEC, typename Use>
__device__ __forceinline__ void each_pack(const Span<T, VEC>& span, int thread, Use& use) {
  const int64_t packs = (span.tail - span.head) / VEC;
#pragma unroll 4
  for (int64_t i = thread; i < packs; i += THREADS) {
    use.template at<VEC>(span.head + (BACKWARDS ? packs - 1 - i : i) * VEC);
  }
  if constexpr (VEC > 1) {
    for (int64_t i = span.begin + thread; i < span.head; i += THREADS) use.template at<1>(i);
    for (int64_t i = span.tail + thread; i < span.end; i += THREADS) use.template at<1>(i);
  }
}

// One thread's part of the sums over a span; each(x, i) sees every element.
template <int THREADS, typename T, int VEC, typename Each>
__device__ __forceinline__ Online<acc_t<T>> online_part(
    const T* __restrict__ row, const Span<T, VEC>& span, int thread, Each each) {
  using A = acc_t<T>;
  constexpr int PACKS = sizeof(T) == 8 ? 2 : VEC >= 4 ? 16 / VEC : 8 / VEC;
  Online<A> found = Online<A>::none();
  for (int64_t i = span.head + thread * VEC; i < span.tail; i += THREADS * VEC * PACKS) {
    Pack<T, VEC> packs[PACKS];
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
      const int64_t j = i + k * (THREADS * VEC);
      if (j < span.tail) packs[k] = load<VEC>(row + j);
    }
    A x[PACKS * VEC];
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
      const int64_t j = i + k * (THREADS * VEC);
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        x[k * VEC + v] = j < span.tail ? widen(packs[k][v]) : -infinity(A(0));
        if (j < span.tail) each(x[k * VEC + v], j + v);
      }
    }
    found.add(x);
  }
  if constexpr (VEC > 1) {
    const auto single = [&](int64_t j) {
      const A x[1] = {widen(row[j])};
      each(x[0], j);
      found.add(x);
    };
    for (int64_t j = span.begin + thread; j < span.head; j += THREADS) single(j);
    for (int64_t j = span.tail + thread; j < span.end; j += THREADS) single(j);
  }
  return found;
}

// VEC sums over the threads that share columns: X lie side by side in a block of 256.
template <int X, int VEC, typename A>
__device__ __forceinline__ void sum_columns(A (&x)[VEC], A (&shared)[VEC][256]) {
  if constexpr (X < 256) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) shared[v][threadIdx.x] = x[v];
    __syncthreads();
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      x[v] = A(0);
      for (int i = threadIdx.x % X; i < 256; i += X) x[v] += shared[v][i];
    }
  }
}

// The sums of VEC neighbouring columns, of which this thread's elements are every (256 / X)th from
// `first` on, `stride` apart; X threads lie side by side, the block is 256. Each gets the result.
template <int X, typename T, int VEC, typename Each>
__device__ __forceinline__ void online_columns(const T* __restrict__ x, int64_t stride, int first,
                                               int64_t end, Online<acc_t<T>> (&found)[VEC],
                                               Online<acc_t<T>> (&shared)[VEC][256], Each each) {
  using A = acc_t<T>;
  constexpr int STEP = 256 / X, AT_ONCE = sizeof(T) == 8 ? 1 : VEC > 4 ? 2 : 4;
#pragma unroll
  for (int v = 0; v < VEC; ++v) found[v] = Online<A>::none();
  for (int64_t i = first; i < end; i += STEP * AT_ONCE) {
    Pack<T, VEC> packs[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      if (i + k * STEP < end) packs[k] = load<VEC>(x + (i + k * STEP) * stride);
    }
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      A values[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; ++k) {
        const bool there = i + k * STEP < end;
        values[k] = there ? widen(packs[k][v]) : -infinity(A(0));
        if (there) each(values[k], i + k * STEP, v);
      }
      found[v].add(values);
    }
  }
  if constexpr (STEP > 1) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) shared[v][threadIdx.x] = found[v];
    __syncthreads();
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      found[v] = Online<A>::none();
      for (int i = threadIdx.x % X; i < 256; i += X) found[v].merge(shared[v][i]);
    }
  }
}
