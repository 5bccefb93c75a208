#include "kernels/threads.hpp"

/// The one function needed of OpenMP, which oneDNN brings along.
extern "C" void omp_set_num_threads(int count);

namespace leeway::kernels {

void use_one_compute_thread() {
  omp_set_num_threads(1);
}

}  // namespace leeway::kernels
