#include "models/datasets/table.hpp"

#include <algorithm>

#include "core/check.hpp"

namespace leeway {

Table::Table(Content content) : content_(std::move(content)) {
  const bool has_targets = content_.classes == 0;
  const std::size_t samples = has_targets ? content_.targets.size() : content_.labels.size();
  const std::size_t unused = has_targets ? content_.labels.size() : content_.targets.size();
  LW_CHECK(content_.features > 0 && unused == 0, content_.features, unused);
  LW_CHECK(content_.x.size() == samples * static_cast<std::size_t>(content_.features),
           content_.x.size(), samples, content_.features);
  for (const std::int32_t label : content_.labels)
    LW_CHECK(label >= 0 && label < content_.classes, label, content_.classes);
  if (content_.shape.rank() == 0) content_.shape = {content_.features};
  LW_CHECK(content_.shape.count() == content_.features, content_.shape, content_.features);
  size_ = static_cast<std::int64_t>(samples);
}

void Table::gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
                   float* targets) const {
  gather_labels(samples, labels, targets);
  const std::int64_t features = content_.features;
  for (const std::int64_t sample : samples)
    x = std::copy_n(content_.x.data() + sample * features, features, x);
}

void Table::gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                          float* targets) const {
  for (const std::int64_t sample : samples) {
    LW_CHECK(sample >= 0 && sample < size_, sample, size_);
    const auto row = static_cast<std::size_t>(sample);
    if (content_.classes > 0) {
      *labels++ = content_.labels[row];
    } else {
      *targets++ = content_.targets[row];
    }
  }
}

}  // namespace leeway
