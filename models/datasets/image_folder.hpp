#pragma once
// Image folders: one folder of PNG and JPEG files per class.
//
// All errors are found before training. Each names the file and what to do.
#include <cstdint>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Reads and decodes all images. Classes are the subfolders' names in the order of their bytes,
/// samples are in the order of class and file name. All images must have the same size; if one has
/// colors, all have three channels, else one. Pixels stay bytes in memory. Without a test folder, a
/// folder with the two subfolders train and test has both; otherwise a seeded share of the images
/// becomes the test set.
Expected<TrainTest> load_image_folder(const plan::ImageFolder& source, std::uint64_t seed);

}  // namespace leeway
