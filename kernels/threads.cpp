#include "kernels/threads.hpp"

/// From OpenMP, which oneDNN links; its header is not needed for one function.
extern "C" void omp_set_num_threads(int count);

namespace leeway::kernels {

void use_one_compute_thread() {
  omp_set_num_threads(1);
}

}  // namespace leeway::kernels
