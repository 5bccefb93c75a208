#include "models/datasets/load.hpp"

#include <map>
#include <mutex>
#include <vector>

#include "core/check.hpp"
#include "core/text.hpp"
#include "models/datasets/csv.hpp"
#include "models/datasets/idx.hpp"
#include "models/datasets/image_folder.hpp"
#include "models/datasets/npy.hpp"
#include "models/datasets/synthetic.hpp"
#include "models/datasets/text.hpp"

namespace leeway {

namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, DataFactory> factories;
};
Registry& registry() {
  static Registry instance;
  return instance;
}

/// Checks that a custom data set keeps the guarantees of load_data().
Status check_custom(const std::string& name, const TrainTest& data) {
  const auto refuse = [&](const auto&... found) {
    return Error{concat("data.custom \"", name, "\": ", found...)};
  };
  if (!data.train || !data.test)
    return refuse("has no ", data.train ? "test" : "training", " set; let its factory return both");
  const Dataset& train = *data.train;
  const Dataset& test = *data.test;
  if (train.size() <= 0 || test.size() <= 0)
    return refuse("has ", train.size(), " training and ", test.size(),
                  " test samples; give at least one each");
  if (train.classes() < 0 || train.target_count() < 0 ||
      (train.classes() > 0) == (train.target_count() > 0))
    return refuse("has ", train.classes(), " classes and ", train.target_count(),
                  " targets; give one of them and leave the other 0");
  if (train.label_count() < 1 || train.label_count() != test.label_count())
    return refuse("has ", train.label_count(), " labels per training sample and ",
                  test.label_count(), " per test sample; give both the same, at least 1");
  if (train.sample_shape().count() <= 0)
    return refuse("has samples of shape ", train.sample_shape(), "; give extents above 0");
  if (train.sample_shape() != test.sample_shape() || train.classes() != test.classes() ||
      train.target_count() != test.target_count())
    return refuse("has training samples of shape ", train.sample_shape(), " with ", train.classes(),
                  " classes and ", train.target_count(), " targets, but test samples of shape ",
                  test.sample_shape(), " with ", test.classes(), " and ", test.target_count(),
                  "; make them agree");
  return {};
}

Expected<TrainTest> make_custom(const plan::CustomData& source, std::uint64_t seed) {
  DataFactory factory;
  std::vector<std::string> known;
  {
    std::lock_guard lock(registry().mutex);
    for (const auto& [name, make] : registry().factories) {
      if (name == source.name) factory = make;
      known.push_back(name);
    }
  }
  if (!factory)
    return Error{concat("data.custom \"", source.name,
                        "\": no such data set; register it with register_data",
                        known.empty() ? "" : suggest(source.name, known))};
  auto data = factory(seed);
  if (!data) return data;
  if (Status status = check_custom(source.name, *data); !status) return status.error();
  return data;
}

struct Loader {
  std::uint64_t seed;
  Expected<TrainTest> operator()(const plan::FashionMnist& source) const {
    return load_fashion_mnist(source.directory);
  }
  Expected<TrainTest> operator()(const plan::Idx& source) const { return load_idx(source); }
  Expected<TrainTest> operator()(const plan::Csv& source) const { return load_csv(source, seed); }
  Expected<TrainTest> operator()(const plan::Synthetic& source) const {
    return make_synthetic(source, seed);
  }
  Expected<TrainTest> operator()(const plan::TextCorpus& source) const { return load_text(source); }
  Expected<TrainTest> operator()(const plan::CustomData& source) const {
    return make_custom(source, seed);
  }
  Expected<TrainTest> operator()(const plan::Npy& source) const { return load_npy(source, seed); }
  Expected<TrainTest> operator()(const plan::ImageFolder& source) const {
    return load_image_folder(source, seed);
  }
};

}  // namespace

Expected<TrainTest> load_data(const plan::DataSource& source, std::uint64_t seed) {
  return std::visit(Loader{seed}, source);
}

void register_data(const std::string& name, DataFactory factory) {
  LW_CHECK(factory != nullptr, name);
  std::lock_guard lock(registry().mutex);
  registry().factories[name] = std::move(factory);
}

}  // namespace leeway
