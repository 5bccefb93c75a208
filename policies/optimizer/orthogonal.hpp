#pragma once
// orthogonalise: the nearest matrix with orthonormal rows or columns, about.
#include <cstdint>

namespace leeway {

/// Replaces the row-major matrix x (rows, columns) by about U V^T of its singular value
/// decomposition U S V^T: five Newton-Schulz iterations with the coefficients of Jordan et al.,
/// "Muon", 2024, leave singular values between 0.7 and 1.2. A matrix of zeros stays zero. Runs on
/// the calling thread.
void orthogonalise(float* x, std::int64_t rows, std::int64_t columns);

}  // namespace leeway
