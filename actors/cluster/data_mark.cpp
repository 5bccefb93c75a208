#include "actors/cluster/data_mark.hpp"

namespace leeway {

node::DataMark mark_of(const TrainTest& data, std::uint64_t checksum) {
  node::DataMark mark;
  mark.train_samples = data.train->size();
  mark.test_samples = data.test->size();
  mark.shape = data.train->sample_shape();
  mark.classes = static_cast<std::uint32_t>(data.train->classes());
  mark.targets = data.train->target_count();
  mark.labels = data.train->label_count();
  mark.background = data.train->background();
  mark.checksum = checksum;
  return mark;
}

}  // namespace leeway
