// Steps of Lion, for all tensors of a dtype at once and in place.
//
// Op:          lion_step
// Math:        g = maximize ? -g : g;  c = b1 m + (1 - b1) g;  p -= lr (sign(c) + decay p);
//              m = b2 m + (1 - b2) g
// Layout:      any dense one, the same for all tensors at one place of the lists
// Types:       float, half, bfloat16 -> float; double -> double
// Instances:   lion_step<float>: 48 registers, 0 bytes shared
//              lion_step<double>: 48 registers, 0 bytes shared
//              lion_step<__half>: 48 registers, 0 bytes shared
//              lion_step<__nv_bfloat16>: 48 registers, 0 bytes shared
// Source:      Chen et al., "Symbolic discovery of optimization algorithms" (2023)

#include "common.cuh"   // the package's: acc_t, packs of 16 bytes
#include "tensors.cuh"  // the package's: lists of tensors in one launch

// Lists p, g, m. Numbers: lr, 1 - b1, 1 - b2, decay.
template <typename T>
__global__ void __launch_bounds__(256)
    lion_step(const __grid_constant__ Tensors<3> tensors,
              const __grid_constant__ Numbers<acc_t<T>> numbers,
              const float* __restrict__ found_inf, int maximize) {
  typedef acc_t<T> A;
  if (is_set(found_inf)) return;
  const A lr = numbers[0], share1 = numbers[1], share2 = numbers[2];
  const A shrink = A(1) - lr * numbers[3];
  for_each_element<T, 3, 4096 / sizeof(T)>(
      tensors, tensor_of_block(tensors), 7, 5, [=](A(&x)[3]) {
        const A g = maximize ? -x[1] : x[1];
        const A c = x[2] + (g - x[2]) * share1;
        x[0] = x[0] * shrink - (c > A(0) ? lr : c < A(0) ? -lr : c * lr);  // NaN stays
        x[2] += (g - x[2]) * share2;
      });
}
