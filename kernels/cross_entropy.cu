// Cross-entropy of class indices straight from the logits, and its gradient.
//
// Op:          cross_entropy, cross_entropy_backward
// Math:        lse = log(sum(exp(x)));  loss = w[t] * (lse - x[t]), smoothed by s:
//              loss = (1 - s) * w[t] * (lse - x[t]) + s / C * sum(w * (lse - x))
//              gx = g * (exp(x - lse) * sum(q) - q), q = (1 - s) * w[t] at t, plus s / C * w
//              mean: divided by the sum of all w[t]; ignored labels have loss, weight and
//              gradient 0; so have labels that are no class, which the host is told of
// Layout:      x contiguous as (outer, classes, inner), inner == 1 for rows; target, lse, loss
//              contiguous as (outer, inner); the sums of weights stay on the device
// Launch:      forward_rows: block max(WIDTH, 128) of block / WIDTH rows, grid min(8192, what rows
//              need), each block going on to further rows; forward_strided: block 256, X columns;
//              forward_finish, backward_weights, backward_total: block 1024;
//              backward_rows, backward_long: block 256, grid ceil(rows * classes / (1024 VEC)), long
//              2048 VEC;
//              backward_strided: block 256, grid columns / (256 VEC) by parts of the classes
// Cost:        forward sizeof(T), backward 2 sizeof(T) bytes a logit, one exp: bound by memory
// Types:       float, half, bfloat16 -> float; double -> double; labels int64
// Determinism: bit for bit; the order of sums depends on the shape only
// Limits:      floating dtypes only; no empty arrays; fewer than 2^31 classes
// Variants:    rows: WIDTH 4 up to 32 classes, 32 up to 1024, 128 up to 4096, else 512;
//              long: 2048 VEC classes or more (float32, us: 885; 4 packs a thread 931, 2: 1144; by
//              `rows` 927); strided: inner > 1; SMOOTH: s > 0; VEC: 16 bytes where memory is aligned, else 1
// Instances:   cross_entropy_forward_rows<float, float, 4, 4, false>: 88 registers, 128 bytes shared
//              cross_entropy_forward_rows<float, float, 4, 32, false>: 88 registers, 128 bytes shared
//              cross_entropy_forward_rows<float, float, 1, 32, true>: 80 registers, 128 bytes shared
//              cross_entropy_forward_rows<float, float, 4, 128, true>: 96 registers, 128 bytes shared
//              cross_entropy_forward_rows<float, float, 4, 512, false>: 72 registers, 128 bytes shared
//              cross_entropy_forward_rows<__half, float, 8, 512, false>: 72 registers, 128 bytes shared
//              cross_entropy_forward_rows<__nv_bfloat16, float, 8, 512, true>: 104 registers, 128 bytes shared
//              cross_entropy_forward_rows<__nv_bfloat16, float, 8, 4, false>: 80 registers, 128 bytes shared
//              cross_entropy_forward_rows<double, double, 2, 32, false>: 80 registers, 256 bytes shared
//              cross_entropy_forward_rows<double, double, 2, 512, true>: 104 registers, 256 bytes shared
//              cross_entropy_forward_strided<float, float, 4, 256, false>: 96 registers, 4096 bytes shared
//              cross_entropy_forward_strided<float, float, 4, 32, true>: 136 registers, 12288 bytes shared
//              cross_entropy_forward_strided<float, float, 1, 8, false>: 96 registers, 3072 bytes shared
//              cross_entropy_forward_strided<__half, float, 8, 32, true>: 136 registers, 24576 bytes shared
//              cross_entropy_forward_strided<__nv_bfloat16, float, 8, 256, false>: 120 registers, 8192 bytes shared
//              cross_entropy_forward_strided<double, double, 2, 32, true>: 128 registers, 12288 bytes shared
//              cross_entropy_forward_finish<float, float>: 32 registers, 128 bytes shared
//              cross_entropy_forward_finish<__half, float>: 32 registers, 128 bytes shared
//              cross_entropy_forward_finish<double, double>: 32 registers, 256 bytes shared
//              cross_entropy_backward_weights<float, float>: 40 registers, 128 bytes shared
//              cross_entropy_backward_weights<__nv_bfloat16, float>: 32 registers, 128 bytes shared
//              cross_entropy_backward_weights<double, double>: 40 registers, 256 bytes shared
//              cross_entropy_backward_total<float>: 16 registers, 128 bytes shared
//              cross_entropy_backward_total<double>: 24 registers, 256 bytes shared
//              cross_entropy_backward_rows<float, float, 4, false>: 64 registers, 0 bytes shared
//              cross_entropy_backward_rows<float, float, 4, true>: 48 registers, 0 bytes shared
//              cross_entropy_backward_rows<float, float, 1, false>: 32 registers, 0 bytes shared
//              cross_entropy_backward_rows<__half, float, 8, true>: 64 registers, 0 bytes shared
//              cross_entropy_backward_rows<__nv_bfloat16, float, 8, false>: 72 registers, 0 bytes shared
//              cross_entropy_backward_rows<double, double, 2, true>: 64 registers, 0 bytes shared
//              cross_entropy_backward_long<float, float, 4, false>: 96 registers, 0 bytes shared
//              cross_entropy_backward_long<float, float, 4, true>: 96 registers, 0 bytes shared
//              cross_entropy_backward_long<float, float, 1, true>: 96 registers, 0 bytes shared
//              cross_entropy_backward_long<__half, float, 8, true>: 144 registers, 0 bytes shared
//              cross_entropy_backward_long<__nv_bfloat16, float, 8, false>: 128 registers, 0 bytes shared
//              cross_entropy_backward_long<double, double, 2, true>: 96 registers, 0 bytes shared
//              cross_entropy_backward_strided<float, float, 4, false>: 72 registers, 0 bytes shared
//              cross_entropy_backward_strided<float, float, 1, true>: 40 registers, 0 bytes shared
//              cross_entropy_backward_strided<__half, float, 8, true>: 128 registers, 0 bytes shared
//              cross_entropy_backward_strided<__nv_bfloat16, float, 8, false>: 88 registers, 0 bytes shared
//              cross_entropy_backward_strided<double, double, 2, true>: 88 registers, 0 bytes shared
// Source:      Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018)
// Measured:    NVIDIA H200, 8192x50257 float32, 2026-11-22: forward 3.98 TB/s, 101 % of a copy;
//              backward 2026-11-23: 3.72 TB/s, 94 %

#include "common.cuh"
#include "fault.cuh"
#include "online.cuh"

// ---------------------------------------------------------------------------- device helpers

// What the labels ask for; `weight` may be null.
template <typename T>
struct Labels {
  const int64_t* __restrict__ target;
  const T* __restrict__ weight;
  int64_t classes, ignored;
  int64_t* fault;  // null in backward passes: the forward one has told

  // The class at a place, or -1.
  __device__ __forceinline__ int at(int64_t place) const {
    const int64_t label = target[place];
    if (label >= 0 && label < classes && label != ignored) return static_cast<int>(label);
    if (label != ignored && fault != nullptr) report(fault, FAULT_CLASS, label, classes);
    return -1;
  }
  __device__ __forceinline__ acc_t<T> weight_of(int64_t label) const {
    if (label < 0) return acc_t<T>(0);
    return weight == nullptr ? acc_t<T>(1) : widen(weight[label]);
  }
};

// A thread's sums of w * (x - start) and w over classes, for the smoothed part of the loss.
template <typename A>
struct Spread {
  A start, dot, weights;

  static __device__ __forceinline__ Spread from(A x) { return {isinf(x) ? A(0) : x, A(0), A(0)}; }
  __device__ __forceinline__ void add(A x, A w) {
    dot += w * (x - start);
    weights += w;
  }
};

// The loss of one target. No difference is taken of large numbers: x and start relative to top.
template <bool SMOOTH, typename A>
__device__ __forceinline__ A loss_of(const Online<A>& found, A x, A w, const Spread<A>& spread,
                                     A smoothing, A classes) {
  const A top = found.top + (found.top - found.top), total = log(found.sum);
  const A loss = w * (total - (x - top));
  if constexpr (!SMOOTH) return loss;
  const A rest = (total - (spread.start - top)) * spread.weights - spread.dot;
  return loss * (1 - smoothing) + rest * (smoothing / classes);
}

// One target's part in the gradient: g * (exp(x - lse) * sum - q).
template <bool SMOOTH, typename A>
struct Wanted {
  A lse, g, sum, peak, level;
  int label;

  template <typename T>
  __device__ __forceinline__ void read(int64_t place, const T* __restrict__ gradients, bool each,
                                       const A* __restrict__ lses, const Labels<T>& labels, A scale,
                                       A weights, A smoothing) {
    label = labels.at(place);
    lse = lses[place];
    g = widen(gradients[each ? place : 0]) * scale;
    peak = labels.weight_of(label);
    sum = peak;
    if constexpr (SMOOTH) {
      level = label < 0 ? A(0) : smoothing / static_cast<A>(labels.classes);
      peak *= 1 - smoothing;
      sum = peak + level * weights;
    }
  }
  // `w` is the class's weight.
  __device__ __forceinline__ A gradient(A x, int64_t c, A w) const {
    A q = c == label ? peak : A(0);
    if constexpr (SMOOTH) q += level * w;
    return g * (exp(x - lse) * sum - q);
  }
};

// What gradients are divided by is the sum of weights, 1 where it is 0 or there is none.
template <typename A>
__device__ __forceinline__ A scale_from(const A* __restrict__ total) {
  return total == nullptr || *total == A(0) ? A(1) : A(1) / *total;
}

// How many blocks are to fit on a multiprocessor: more would spill, fewer would hold too much.
template <typename T, int WIDTH, bool SMOOTH>
constexpr int BLOCKS = SMOOTH || sizeof(T) == 8 ? 1 : WIDTH < 512 ? 6 : 2;

// ---------------------------------------------------------------------------- kernels

// `losses` is one a row, or else `partial` gets (loss, weight) of each block.
template <typename T, typename A, int VEC, int WIDTH, bool SMOOTH>
__global__ void __launch_bounds__(WIDTH < 128 ? 128 : WIDTH, BLOCKS<T, WIDTH, SMOOTH>)
    cross_entropy_forward_rows(const T* __restrict__ x, const int64_t* __restrict__ target,
                               const T* __restrict__ weight, int64_t rows, int64_t classes,
                               int64_t ignored, A smoothing, T* __restrict__ losses,
                               A* __restrict__ partial, A* __restrict__ lse, int64_t* fault) {
  constexpr int THREADS = WIDTH < 128 ? 128 : WIDTH, ROWS = THREADS / WIDTH;
  __shared__ A shared[32];
  const Labels<T> labels{target, weight, classes, ignored, fault};
  const int lane = threadIdx.x % WIDTH;
  A losses_here = A(0), weights_here = A(0);
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * ROWS; first < rows;
       first += static_cast<int64_t>(gridDim.x) * ROWS) {
    const int64_t row = first + threadIdx.x / WIDTH;
    const bool there = row < rows;
    const T* __restrict__ from = x + row * classes;
    const Span<T, VEC> span(from, 0, there ? classes : 0);
    Spread<A> spread = Spread<A>::from(SMOOTH && there ? widen(from[0]) : A(0));
    const Online<A> part = online_part<WIDTH>(from, span, lane, [&](A value, int64_t c) {
      if constexpr (SMOOTH) spread.add(value, labels.weight_of(c));
    });
    const Online<A> found = group_reduce<WIDTH>(part, shared);
    if constexpr (SMOOTH) {
      spread.dot = group_reduce<Sum, WIDTH>(spread.dot, A(0), shared);
      spread.weights = group_reduce<Sum, WIDTH>(spread.weights, A(0), shared);
    }
    if (lane == 0 && there) {
      const int label = labels.at(row);
      A loss = A(0);
      if (label >= 0) {
        const A w = labels.weight_of(label);
        loss = loss_of<SMOOTH>(found, widen(from[label]), w, spread, smoothing,
                               static_cast<A>(classes));
        weights_here += w;
      }
      losses_here += loss;
      if (losses != nullptr) losses[row] = narrow<T>(loss);
      lse[row] = found.strict_logarithm();
    }
  }
  if (partial == nullptr) return;
  losses_here = block_reduce<Sum, THREADS>(losses_here, A(0), shared);
  weights_here = block_reduce<Sum, THREADS>(weights_here, A(0), shared);
  if (threadIdx.x == 0) {
    partial[2 * blockIdx.x] = losses_here;
    partial[2 * blockIdx.x + 1] = weights_here;
  }
}

// X * VEC neighbouring columns of a slab (classes, inner) at a time; `tiles` is how many a slab
// has, `all` how many there are.
template <typename T, typename A, int VEC, int X, bool SMOOTH>
__global__ void __launch_bounds__(256, 2)
    cross_entropy_forward_strided(const T* __restrict__ x, const int64_t* __restrict__ target,
                                  const T* __restrict__ weight, int64_t classes, int64_t inner,
                                  int64_t tiles, int64_t all, int64_t ignored, A smoothing,
                                  T* __restrict__ losses, A* __restrict__ partial,
                                  A* __restrict__ lse, int64_t* fault) {
  __shared__ Online<A> shared[VEC][256];
  __shared__ A sums[VEC][256];
  const Labels<T> labels{target, weight, classes, ignored, fault};
  const int line = threadIdx.x / X;
  A losses_here = A(0), weights_here = A(0);
  for (int64_t tile = blockIdx.x; tile < all; tile += gridDim.x) {
    const int64_t column = (tile % tiles * X + threadIdx.x % X) * VEC, slab = tile / tiles;
    const int64_t end = column < inner ? classes : 0;
    const T* __restrict__ from = x + slab * classes * inner + column;
    A dot[VEC], weights[VEC], start[VEC];
    if constexpr (SMOOTH) {
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        start[v] = Spread<A>::from(end > 0 ? widen(from[v]) : A(0)).start;
        dot[v] = weights[v] = A(0);
      }
    }
    __syncthreads();
    Online<A> found[VEC];
    online_columns<X>(from, inner, line, end, found, shared, [&](A value, int64_t c, int v) {
      if constexpr (SMOOTH) {
        const A w = labels.weight_of(c);
        dot[v] += w * (value - start[v]);
        weights[v] += w;
      }
    });
    if constexpr (SMOOTH) {
      sum_columns<X>(dot, sums);
      __syncthreads();
      sum_columns<X>(weights, sums);
    }
    if (line == 0 && end > 0) {
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        const int64_t place = slab * inner + column + v;
        const int label = labels.at(place);
        A loss = A(0);
        if (label >= 0) {
          const A w = labels.weight_of(label);
          Spread<A> spread{};
          if constexpr (SMOOTH) spread = {start[v], dot[v], weights[v]};
          loss = loss_of<SMOOTH>(found[v], widen(from[label * inner + v]), w, spread, smoothing,
                                 static_cast<A>(classes));
          weights_here += w;
        }
        losses_here += loss;
        if (losses != nullptr) losses[place] = narrow<T>(loss);
        lse[place] = found[v].strict_logarithm();
      }
    }
  }
  if (partial == nullptr) return;
  losses_here = block_reduce<Sum, 256>(losses_here, A(0), sums[0]);
  weights_here = block_reduce<Sum, 256>(weights_here, A(0), sums[0]);
  if (threadIdx.x == 0) {
    partial[2 * blockIdx.x] = losses_here;
    partial[2 * blockIdx.x + 1] = weights_here;
  }
}

// One block: the sum of the blocks' losses, divided by that of their weights if asked for.
template <typename T, typename A>
__global__ void __launch_bounds__(1024)
    cross_entropy_forward_finish(const A* __restrict__ partial, int64_t count, bool mean,
                                 T* __restrict__ loss) {
  __shared__ A shared[32];
  A total = A(0), weights = A(0);
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < count; i += 1024) {
    total += partial[2 * i];
    weights += partial[2 * i + 1];
  }
  total = block_reduce<Sum, 1024>(total, A(0), shared);
  weights = block_reduce<Sum, 1024>(weights, A(0), shared);
  if (threadIdx.x == 0) *loss = narrow<T>(mean ? total / weights : total);
}

// The sum of the targets' weights, by block; without targets, of the classes' weights.
template <typename T, typename A>
__global__ void __launch_bounds__(1024)
    cross_entropy_backward_weights(const int64_t* __restrict__ target,
                                   const T* __restrict__ weight, int64_t count, int64_t classes,
                                   int64_t ignored, A* __restrict__ partial) {
  __shared__ A shared[32];
  const Labels<T> labels{target, weight, classes, ignored};
  A total = A(0);
#pragma unroll 4
  GRID_STRIDE(i, count) {
    total += labels.weight_of(target == nullptr ? i : static_cast<int64_t>(labels.at(i)));
  }
  total = block_reduce<Sum, 1024>(total, A(0), shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

template <typename A>
__global__ void __launch_bounds__(1024)
    cross_entropy_backward_total(const A* __restrict__ partial, int count,
                                 A* __restrict__ total) {
  __shared__ A shared[32];
  A sum = threadIdx.x < count ? partial[threadIdx.x] : A(0);
  sum = block_reduce<Sum, 1024>(sum, A(0), shared);
  if (threadIdx.x == 0) *total = sum;
}

// All rows as one: packs are aligned whatever the number of classes, and may hold parts of rows.
// `g` is one number, or one for each target. `total` and `weights` may be null: no mean, weights 1.
template <typename T, typename A, int VEC, bool SMOOTH>
__global__ void __launch_bounds__(256)
    cross_entropy_backward_rows(const T* __restrict__ g, bool each, const T* __restrict__ x,
                                const A* __restrict__ lse, const int64_t* __restrict__ target,
                                const T* __restrict__ weight, const A* __restrict__ total,
                                const A* __restrict__ weights, int64_t count, int64_t classes,
                                int64_t ignored, A smoothing, T* __restrict__ gx) {
  constexpr int PACKS = 4, CHUNK = 256 * VEC * PACKS;
  const Labels<T> labels{target, weight, classes, ignored};
  const A scale = scale_from(total);
  const A all = weights == nullptr ? static_cast<A>(classes) : *weights;
  const int64_t start = static_cast<int64_t>(blockIdx.x) * CHUNK;
  const int64_t first = start / classes, before = start - first * classes;
  Pack<T, VEC> packs[PACKS];
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
    const int64_t i = start + (k * 256 + threadIdx.x) * VEC;
    if (i + VEC <= count) {
      packs[k] = load<VEC>(x + i);
    } else {
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        if (i + v < count) packs[k][v] = x[i + v];
      }
    }
  }
  Wanted<SMOOTH, A> wanted;
  int64_t known = -1;
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
    const int offset = (k * 256 + threadIdx.x) * VEC;
    const int64_t i = start + offset;
    int64_t row = first, c = before + offset;
    if (classes >= CHUNK) {
      if (c >= classes) {
        ++row;
        c -= classes;
      }
    } else {
      const uint32_t within = static_cast<uint32_t>(c), size = static_cast<uint32_t>(classes);
      row += within / size;
      c = within % size;
    }
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      if (i + v < count) {
        if (c == classes) {
          ++row;
          c = 0;
        }
        if (row != known) {
          wanted.read(row, g, each, lse, labels, scale, all, smoothing);
          known = row;
        }
        const A w = SMOOTH ? labels.weight_of(c) : A(0);
        packs[k][v] = narrow<T>(wanted.gradient(widen(packs[k][v]), c, w));
        ++c;
      }
    }
    if (i + VEC <= count) {
      store(gx + i, packs[k]);
    } else {
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        if (i + v < count) gx[i + v] = packs[k][v];
      }
    }
  }
}

// The same for rows of a block's elements or more, of which a block then meets two at most: both are
// read while the logits are on their way.
template <typename T, typename A, int VEC, bool SMOOTH>
__global__ void __launch_bounds__(256)
    cross_entropy_backward_long(const T* __restrict__ g, bool each, const T* __restrict__ x,
                                const A* __restrict__ lse, const int64_t* __restrict__ target,
                                const T* __restrict__ weight, const A* __restrict__ total,
                                const A* __restrict__ weights, int64_t count, int64_t classes,
                                int64_t ignored, A smoothing, T* __restrict__ gx) {
  constexpr int PACKS = 8, CHUNK = 256 * VEC * PACKS;
  const Labels<T> labels{target, weight, classes, ignored};
  const int64_t start = static_cast<int64_t>(blockIdx.x) * CHUNK;
  const int64_t first = start / classes, before = start - first * classes;
  // places within the block: where the second row starts, and where everything ends
  const int next = classes - before < CHUNK ? static_cast<int>(classes - before) : CHUNK;
  const int end = count - start < CHUNK ? static_cast<int>(count - start) : CHUNK;
  Pack<T, VEC> packs[PACKS];
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
    const int place = (k * 256 + threadIdx.x) * VEC;
    if (place + VEC <= end) {
      packs[k] = load<VEC>(x + start + place);
    } else {
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        if (place + v < end) packs[k][v] = x[start + place + v];
      }
    }
  }
  const A scale = scale_from(total);
  const A all = weights == nullptr ? static_cast<A>(classes) : *weights;
  Wanted<SMOOTH, A> one, other;
  one.read(first, g, each, lse, labels, scale, all, smoothing);
  other = one;
  if (next < end) other.read(first + 1, g, each, lse, labels, scale, all, smoothing);
#pragma unroll
  for (int k = 0; k < PACKS; ++k) {
    const int place = (k * 256 + threadIdx.x) * VEC;
    const auto gradient = [&](const Wanted<SMOOTH, A>& wanted, int64_t c, int v) {
      const A w = SMOOTH && place + v < end ? labels.weight_of(c) : A(0);
      packs[k][v] = narrow<T>(wanted.gradient(widen(packs[k][v]), c, w));
    };
    if (place + VEC <= next || place >= next) {
      const Wanted<SMOOTH, A> wanted = place < next ? one : other;
      const int64_t c = place < next ? before + place : place - next;
#pragma unroll
      for (int v = 0; v < VEC; ++v) gradient(wanted, c + v, v);
    } else {
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        const bool here = place + v < next;
        gradient(here ? one : other, here ? before + place + v : place + v - next, v);
      }
    }
    if (place + VEC <= end) {
      store(gx + start + place, packs[k]);
    } else {
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        if (place + v < end) gx[start + place + v] = packs[k][v];
      }
    }
  }
}

// A thread has VEC neighbouring columns, and the classes of part blockIdx.y.
template <typename T, typename A, int VEC, bool SMOOTH>
__global__ void __launch_bounds__(256)
    cross_entropy_backward_strided(const T* __restrict__ g, bool each, const T* __restrict__ x,
                                   const A* __restrict__ lse, const int64_t* __restrict__ target,
                                   const T* __restrict__ weight, const A* __restrict__ total,
                                   const A* __restrict__ weights, int64_t outer, int64_t classes,
                                   int64_t inner, int64_t part, int64_t ignored, A smoothing,
                                   T* __restrict__ gx) {
  const Labels<T> labels{target, weight, classes, ignored};
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  const int64_t slab = thread / (inner / VEC), column = thread % (inner / VEC) * VEC;
  if (slab >= outer) return;
  const A scale = scale_from(total);
  const A all = weights == nullptr ? static_cast<A>(classes) : *weights;
  Wanted<SMOOTH, A> wanted[VEC];
#pragma unroll
  for (int v = 0; v < VEC; ++v) {
    wanted[v].read(slab * inner + column + v, g, each, lse, labels, scale, all, smoothing);
  }
  const int64_t begin = blockIdx.y * part;
  const int64_t end = begin + part < classes ? begin + part : classes;
  const int64_t start = slab * classes * inner + column;
#pragma unroll 4
  for (int64_t c = begin; c < end; ++c) {
    Pack<T, VEC> pack = load<VEC>(x + start + c * inner);
    const A w = SMOOTH ? labels.weight_of(c) : A(0);
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      pack[v] = narrow<T>(wanted[v].gradient(widen(pack[v]), c, w));
    }
    store(gx + start + c * inner, pack);
  }
}
