#pragma once
// Arrays of NumPy: .npy files of numbers in C order, plain or gzipped
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
//
// Debian has no library for this format in C++; the reader accepts what numpy.save writes and
// nothing else. All errors are found before training. Each names the file, the value found and what
// to do.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// The content of one .npy file, with at least one element.
struct NpyArray {
  /// Letter and bytes of NumPy's types: b1 is bool, i and u are integers, f are floats.
  enum class Type : std::uint8_t { b1, i1, u1, i2, u2, i4, u4, i8, u8, f4, f8 };

  std::string name;  // of the file
  Type type = Type::f4;
  std::size_t value_bytes = 4;
  std::vector<std::int64_t> extents;  // outermost first, at least one
  std::vector<std::byte> file;        // values begin at `begin`, row-major
  std::size_t begin = 0;

  std::int64_t samples() const { return extents[0]; }
  /// Elements of one sample.
  std::int64_t sample_values() const;
  /// Element `index` of all.
  double operator[](std::size_t index) const;
};

/// Decodes a whole file that is not gzipped. `name` is for errors.
Expected<NpyArray> parse_npy(std::vector<std::byte> file, const std::string& name);

/// Reads, decodes and checks the files, and normalises. Features (N) and (N, F) are tables, whose
/// columns are numbered from 1. Features of more extents are normalised together; (N, H, W) becomes
/// Nx1xHxW. Unsigned bytes of images stay bytes in memory. Without test files, a seeded share of
/// the samples becomes the test set.
Expected<TrainTest> load_npy(const plan::Npy& source, std::uint64_t seed);

}  // namespace leeway
