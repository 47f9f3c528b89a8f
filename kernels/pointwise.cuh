// What kernels generated from pointwise formulas use: words that CUDA lacks, groups of elements.

#include "common.cuh"

// N consecutive elements, read and written in accesses of up to 16 bytes.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Group {
  T values[N];
};
template <int N, typename T>
__device__ __forceinline__ Group<T, N> read(const T* from) {
  return *reinterpret_cast<const Group<T, N>*>(from);
}
template <int N, typename T>
__device__ __forceinline__ void write(T* to, const Group<T, N>& values) {
  *reinterpret_cast<Group<T, N>*>(to) = values;
}

// A value as another type, two-byte floats by way of float.
template <typename T, typename S>
__device__ __forceinline__ T as(S x) {
  return static_cast<T>(x);
}
template <>
__device__ __forceinline__ __half as<__half, float>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 as<__nv_bfloat16, float>(float x) {
  return __float2bfloat16_rn(x);
}

// A float as it comes back from two bytes. In the upper half of a pair bfloat16's bits are a float's.
template <typename T>
__device__ __forceinline__ float rounded(float x) {
  return __half2float(__low2half(__floats2half2_rn(x, 0.0f)));
}
template <>
__device__ __forceinline__ float rounded<__nv_bfloat16>(float x) {
#if __CUDA_ARCH__ >= 800
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x), "f"(0.0f));
  return __uint_as_float(pair);
#else
  return __bfloat162float(__float2bfloat16_rn(x));
#endif
}

// NaN wins; of two zeros the second one stays.
template <typename T>
__device__ __forceinline__ T larger(T x, T y) {
  return x > y || x != x ? x : y;
}
template <typename T>
__device__ __forceinline__ T smaller(T x, T y) {
  return x < y || x != x ? x : y;
}
template <typename T>
__device__ __forceinline__ T sign_of(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x;
}

// Python's // and %, as NumPy computes them; integers divided by zero give zero.
template <typename T>
__device__ __forceinline__ T floor_quotient_of_floats(T x, T y) {
  if (y == T(0)) return x / y;
  const T rest = fmod(x, y);
  T quotient = (x - rest) / y;
  if (rest != T(0) && (y < T(0)) != (rest < T(0))) quotient -= T(1);
  if (quotient == T(0)) return copysign(T(0), x / y);
  const T whole = floor(quotient);
  return quotient - whole > T(0.5) ? whole + T(1) : whole;
}
template <typename T>
__device__ __forceinline__ T floor_remainder_of_floats(T x, T y) {
  const T rest = fmod(x, y);
  if (rest == T(0)) return copysign(rest, y);
  return (y < T(0)) != (rest < T(0)) ? rest + y : rest;
}
template <typename T>
__device__ __forceinline__ T floor_quotient(T x, T y) {
  if (y == T(0)) return T(0);
  const T quotient = x / y;
  return quotient - T((x < T(0)) != (y < T(0)) && quotient * y != x);
}
template <typename T>
__device__ __forceinline__ T floor_remainder(T x, T y) {
  if (y == T(0)) return T(0);
  const T rest = x % y;
  return rest != T(0) && (rest < T(0)) != (y < T(0)) ? rest + y : rest;
}
template <>
__device__ __forceinline__ float floor_quotient<float>(float x, float y) {
  return floor_quotient_of_floats(x, y);
}
template <>
__device__ __forceinline__ double floor_quotient<double>(double x, double y) {
  return floor_quotient_of_floats(x, y);
}
template <>
__device__ __forceinline__ float floor_remainder<float>(float x, float y) {
  return floor_remainder_of_floats(x, y);
}
template <>
__device__ __forceinline__ double floor_remainder<double>(double x, double y) {
  return floor_remainder_of_floats(x, y);
}

// log(exp(x) + exp(y)); equal infinities are their own.
template <typename T>
__device__ __forceinline__ T log_of_sum(T x, T y) {
  if (x == y) return x + T(0.6931471805599453);
  return larger(x, y) + log1p(exp(-fabs(x - y)));
}
