#include "models/stash.hpp"

namespace leeway {

std::int64_t Stash::bytes() const {
  std::size_t bytes = 0;
  for (const Blob* blob :
       {&input, &samples, &moved, &sample_keys, &told, &numbers, &loss, &output, &output_gradient})
    bytes += blob->size();
  for (const Blob& blob : open) bytes += blob.size();
  if (activations) {
    for (const Blob& blob : activations->outputs) bytes += blob.size();
    for (const Blob& blob : activations->kept) bytes += blob.size();
    bytes += activations->loss_gradient.size();
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace leeway
