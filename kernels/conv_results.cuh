// What Hopper's convolutions do with their results: boxes to memory by the copy engine, transposed
// fragments, sums over the blocks of a cluster.

__device__ __forceinline__ void store_box(const TensorMap& map, const void* from, int x, int y,
                                          int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];\n"
      ::"l"(&map), "r"(shared_address(from)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}
__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}
// Waits until the shared memory of all but this thread's N last groups of stores has been read.
template <int N>
__device__ __forceinline__ void wait_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(N) : "memory");
}

// Stores four 8 x 8 matrices of 16-bit values, whose fragments are r, transposed: the lanes tell
// where each of the columns goes.
__device__ __forceinline__ void store_transposed(char* column, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(
                   shared_address(column)),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

// ---- blocks of a cluster: all threads wait for each other, and see what the others wrote to
// shared memory; a value of the block `rank` at the place that `mine` has in this block.
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n" ::
                   : "memory");
}
__device__ __forceinline__ void add_from(float (&sum)[4], const void* mine, int rank) {
  uint32_t there;
  float x, y, z, w;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n"
               : "=r"(there)
               : "r"(shared_address(mine)), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];\n"
               : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
               : "r"(there));
  sum[0] += x, sum[1] += y, sum[2] += z, sum[3] += w;
}
