// What pools share: which windows reach a place of an axis, and who wins a window.

// The windows along an axis that reach the places first .. last of the padded axis: low .. high.
struct Windows {
  int low, high;
  __device__ __forceinline__ Windows(int first, int last, int reach, int stride, int count) {
    const int before = first - reach;
    low = before <= 0 ? 0 : (before + stride - 1) / stride;
    high = last / stride < count ? last / stride : count - 1;
  }
};

template <typename T>
__device__ __forceinline__ acc_t<T> at(const T* x, int64_t i) {
  return widen(x[i]);
}

__device__ __forceinline__ float lowest(float) { return __int_as_float(0xff800000); }
__device__ __forceinline__ double lowest(double) {
  return __longlong_as_double(0xfff0000000000000ll);
}

constexpr int NOBODY = 255;

// The maximum so far and who holds it.
template <typename A>
struct Winner {
  A best;
  int code;
  // `place` is the first one inside, whose value is still to be met, or NOBODY.
  __device__ __forceinline__ void start(int place) {
    best = lowest(A(0));
    code = place;
  }
  __device__ __forceinline__ void meet(A x, int place) {
    if (x > best || x != x) {
      best = x;
      code = place;
    }
  }
};
