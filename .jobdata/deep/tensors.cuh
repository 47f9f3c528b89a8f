// Many tensors in one launch: lists of them as a kernel argument, and a loop over a block's chunk.
//
// A step works on LISTS lists of equally many tensors (parameters, gradients, states); tensors at
// the same place have the same size and lie in memory alike. Their addresses travel by value, as
// many as fit into the 4 KB that a launch may carry, so that a launch can be captured in a graph.
// Blocks take chunks of CHUNK elements: block b works for the last tensor whose `starts` is <= b.

// The host packs this by the same formula: pointers, sizes, then the starts.
template <int LISTS>
struct Tensors {
  static constexpr int most = 3832 / (8 * LISTS + 12);
  void* at[LISTS][most];
  int64_t sizes[most];
  int starts[most];
  int count;
};

// Numbers by value, or in device memory where a replayed graph must read them anew. A cell that
// holds the number rounded is not used, as the number itself is exact.
template <typename A>
struct Numbers {
  const float* cells[8];
  A values[8];
  __device__ __forceinline__ A operator[](int i) const {
    if (cells[i] == nullptr) return values[i];
    const float now = *cells[i];
    return static_cast<float>(values[i]) == now ? values[i] : static_cast<A>(now);
  }
};

// A flag in device memory that may be missing.
__device__ __forceinline__ bool is_set(const float* flag) {
  return flag != nullptr && *flag != 0.0f;
}

// Which tensor this block works for.
template <int LISTS>
__device__ __forceinline__ int tensor_of_block(const Tensors<LISTS>& tensors) {
  int low = 0, high = tensors.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (tensors.starts[middle] <= static_cast<int>(blockIdx.x)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// Calls `rule(values)` for every element of the block's chunk of tensor `which`, where values[l] is
// the element of list l, loaded if bit l of `loads` is set (else zero), and stored afterwards if
// bit l of `stores` is. Packs of 16 bytes where all addresses allow it. DATA of the lists are
// tensors of that size; what the others point to is the rule's business.
template <typename T, int DATA, int CHUNK, int LISTS, typename Rule>
__device__ __forceinline__ void for_each_element(const Tensors<LISTS>& tensors, int which,
                                                 unsigned int loads, unsigned int stores,
                                                 Rule&& rule) {
  constexpr int VEC = 16 / sizeof(T);
  static_assert(CHUNK % VEC == 0 && DATA <= LISTS, "chunks are whole packs");
  T* at[DATA];
  uint64_t bits = 0;
#pragma unroll
  for (int l = 0; l < DATA; ++l) {
    at[l] = static_cast<T*>(tensors.at[l][which]);
    bits |= reinterpret_cast<uint64_t>(at[l]);
  }
  const int64_t size = tensors.sizes[which];
  int64_t begin = static_cast<int64_t>(blockIdx.x - tensors.starts[which]) * CHUNK;
  const int64_t end = begin + CHUNK < size ? begin + CHUNK : size;
  if (bits % 16 == 0) {
    const int64_t packed = begin + (end - begin) / VEC * VEC;
    for (int64_t k = begin + threadIdx.x * VEC; k < packed; k += blockDim.x * VEC) {
      Pack<T, VEC> packs[DATA];
#pragma unroll
      for (int l = 0; l < DATA; ++l) {
        if (loads >> l & 1) packs[l] = load<VEC>(at[l] + k);
      }
#pragma unroll
      for (int j = 0; j < VEC; ++j) {
        acc_t<T> values[DATA];
#pragma unroll
        for (int l = 0; l < DATA; ++l) {
          values[l] = loads >> l & 1 ? widen(packs[l][j]) : acc_t<T>(0);
        }
        rule(values);
#pragma unroll
        for (int l = 0; l < DATA; ++l) {
          if (stores >> l & 1) packs[l][j] = narrow<T>(values[l]);
        }
      }
#pragma unroll
      for (int l = 0; l < DATA; ++l) {
        if (stores >> l & 1) store<VEC>(at[l] + k, packs[l]);
      }
    }
    begin = packed;
  }
  for (int64_t k = begin + threadIdx.x; k < end; k += blockDim.x) {
    acc_t<T> values[DATA];
#pragma unroll
    for (int l = 0; l < DATA; ++l) {
      values[l] = loads >> l & 1 ? widen(at[l][k]) : acc_t<T>(0);
    }
    rule(values);
#pragma unroll
    for (int l = 0; l < DATA; ++l) {
      if (stores >> l & 1) at[l][k] = narrow<T>(values[l]);
    }
  }
}
