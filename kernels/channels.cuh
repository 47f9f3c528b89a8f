// How the threads of batch norm's blocks walk over the values of channels.

// Packs in flight per thread, of kernels that only read and of those that write as well.
template <int VEC>
constexpr int READ = VEC == 1 ? 8 : 4;
template <int VEC>
constexpr int DEPTH = VEC < 8 ? READ<VEC> : 2;

// The packs of one thread, all of the same channel, or with LAST of the same VEC channels. A
// channel has `count` packs (LAST: rows), cut into `parts` of `chunk`; a plane has `length` packs.
template <bool LAST, int VEC>
struct Walk {
  int64_t offset, channel, jump, wrap;  // in elements, but for the channel
  uint32_t left, part, place, step, length;

  __device__ __forceinline__ Walk(uint32_t block, int64_t channels, uint32_t count,
                                  uint32_t length, uint32_t parts, uint32_t chunk)
      : wrap(0), place(0), step(0), length(length) {
    uint32_t row, stride;
    if constexpr (LAST) {
      const uint32_t tiles = gridDim.x / parts;
      part = block / tiles;
      row = threadIdx.y;
      stride = blockDim.y;
      channel = (static_cast<int64_t>(block - part * tiles) * blockDim.x + threadIdx.x) * VEC;
    } else {
      const uint32_t plane = block / parts;
      part = block - plane * parts;
      row = threadIdx.x;
      stride = 256;
      channel = plane;
    }
    // 64 bits: part * chunk may lie a little beyond the end
    const int64_t first = static_cast<int64_t>(part) * chunk;
    const int64_t rest = first < count ? count - first : 0;
    const uint32_t mine = rest < chunk ? static_cast<uint32_t>(rest) : chunk;
    left = row < mine && channel < channels ? (mine - row + stride - 1) / stride : 0;
    const uint32_t start = left ? static_cast<uint32_t>(first) + row : 0;
    if constexpr (LAST) {
      offset = start * channels + channel;
      jump = stride * channels;
    } else {
      const int64_t plane = static_cast<int64_t>(length) * VEC, sample = plane * channels;
      const uint32_t n = start / length, samples = 256 / length;
      place = start - n * length;
      step = 256 - samples * length;
      offset = n * sample + channel * plane + static_cast<int64_t>(place) * VEC;
      jump = samples * sample + static_cast<int64_t>(step) * VEC;
      wrap = sample - plane;
    }
  }
  __device__ __forceinline__ void advance() {
    offset += jump;
    if constexpr (!LAST) {
      place += step;
      if (place >= length) {
        place -= length;
        offset += wrap;
      }
    }
  }
};
