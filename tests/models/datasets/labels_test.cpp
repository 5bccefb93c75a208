#include "tests/models/datasets/labels.hpp"

#include "models/datasets/load.hpp"
#include "models/datasets/text.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

const plan::Synthetic kClusters{30, 10, plan::Clusters{5, 4, 3}};
const plan::Synthetic kLine{30, 10, plan::Line{3, 2, 1}};

/// A custom data set that does not override gather_labels(), with each target twice.
class Doubled final : public Dataset {
 public:
  explicit Doubled(std::shared_ptr<const Dataset> of) : of_(std::move(of)) {}
  std::int64_t size() const override { return of_->size(); }
  Shape sample_shape() const override { return of_->sample_shape(); }
  int classes() const override { return of_->classes(); }
  std::int64_t target_count() const override { return 2 * of_->target_count(); }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float* targets) const override {
    std::vector<float> once(samples.size());
    of_->gather(samples, x, labels, once.data());
    for (std::size_t i = 0; i < once.size() && target_count() > 0; ++i)
      targets[2 * i] = targets[2 * i + 1] = once[i];
  }

 private:
  std::shared_ptr<const Dataset> of_;
};

}  // namespace

TEST_CASE("gather_labels gives the labels and targets of gather") {
  for (const auto& source : {kClusters, kLine}) {
    const auto data = load_data(source, 3);
    REQUIRE(data);
    require_labels_agree(*data->train);
    require_labels_agree(Doubled(data->train));
  }
  const auto text = windows_of("In the beginning was the Word", {"", 4, 0.2}, "text");
  REQUIRE(text);
  require_labels_agree(*text->train);
}
