#pragma once
// Images and labels in IDX files, the format of MNIST and Fashion-MNIST
// (http://yann.lecun.com/exdb/mnist), plain or gzipped.
//
// All errors are found before training. Each names the file, the byte, the value found and what to
// do.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// The expected content of an IDX file.
enum class IdxKind : std::uint8_t {
  images,  // (N, H, W) or (N, C, H, W) unsigned bytes
  labels,  // (N) unsigned bytes
};

/// The content of one IDX file, with at least one element.
struct IdxArray {
  std::string name;                   // of the file
  std::vector<std::int64_t> extents;  // outermost first
  std::vector<std::uint8_t> values;   // row-major
};

/// Decodes a whole file, gzipped or plain. `name` is for errors.
Expected<IdxArray> parse_idx(std::span<const std::byte> file, const std::string& name,
                             IdxKind kind);

/// The content of the four files of a data set.
struct IdxArrays {
  IdxArray train_images, train_labels, test_images, test_labels;
};

/// Checks that the four files agree and makes data sets of them. Pixels stay bytes in memory and
/// are gathered as (value / 255 - mean) / deviation, with the mean and deviation of all training
/// pixels. The sample shape is 1xHxW or CxHxW. Errors: counts or image sizes that disagree, and
/// test labels above the largest training label.
Expected<TrainTest> make_idx(IdxArrays arrays);

/// Reads, decodes and checks four files.
Expected<TrainTest> load_idx(const plan::Idx& files);

/// Loads the four files from `directory` by their usual names, gzipped or plain. Debian's package
/// dataset-fashion-mnist installs them.
Expected<TrainTest> load_fashion_mnist(const std::string& directory);

}  // namespace leeway
