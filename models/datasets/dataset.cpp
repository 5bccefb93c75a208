#include "models/datasets/dataset.hpp"

#include <vector>

namespace leeway {

void Dataset::gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                            float* targets) const {
  std::vector<float> x(static_cast<std::size_t>(sample_shape().count()));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    gather(samples.subspan(i, 1), x.data(), labels, targets);
    if (classes() > 0) labels += label_count();
    if (target_count() > 0) targets += target_count();
  }
}

}  // namespace leeway
