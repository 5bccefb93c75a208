// Frozen layers: the backward of a model that trains only some of its layers.
#include <cstring>

#include "models/pass_plan.hpp"
#include "models/pieces.hpp"
#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

std::shared_ptr<const Model> frozen_model(const Layers& layers, std::vector<bool> frozen) {
  auto model = Model::build(layers, kSoftmax, {1, 6, 6}, 3, 0, 1, std::move(frozen));
  REQUIRE(model);
  return *model;
}

Layers layers() {
  return {conv2d(4, 3), residual({conv2d(4, 3, {.padding = 1}), relu()}),
          batch_norm(), relu(),
          flatten(),    linear(5),
          relu(),       linear(3)};
}

TEST_CASE("frozen layers change no gradient of the others") {
  const auto all = frozen_model(layers(), {});
  const RandomBatch batch(*all, 7, 3);
  Memory whole(all);
  whole.initialize(5);
  const auto gradients_of = [&](std::shared_ptr<const Model> model, const Memory& memory) {
    Pass pass(model, 7, true);
    pass.forward(batch.batch, memory.weights());
    run_backward(pass, memory);
  };
  gradients_of(all, whole);
  for (std::uint32_t mask = 0; mask < 256; ++mask) {
    std::vector<bool> frozen;
    for (std::uint32_t i = 0; i < 8; ++i) frozen.push_back((mask >> i & 1) != 0);
    const auto model = frozen_model(layers(), frozen);
    if (model->trained_count() == 0) continue;
    Memory memory(model);
    memory.initialize(5);
    gradients_of(model, memory);
    for (std::size_t p = 0; p < model->parameters().size(); ++p) {
      INFO(mask << ' ' << model->parameters()[p].name);
      if (model->parameters()[p].frozen) continue;
      const Floats expected = whole.gradient(p), found = memory.gradient(p);
      CHECK(std::memcmp(expected.data(), found.data(), 4 * expected.size()) == 0);
    }
  }
}

TEST_CASE("frozen layers before all trained ones have no backward") {
  const auto model = frozen_model({flatten(), linear(5), relu(), linear(4), relu(), linear(3)},
                                  {false, true, false, true, false, false});
  const PassPlan plan(*model, true);
  for (int layer = 0; layer < 5; ++layer)
    CHECK(plan.backward[static_cast<std::size_t>(layer)].empty());
  CHECK_FALSE(plan.backward[5].empty());
  CHECK(wanted_gradients(*model) == std::vector<bool>{false, false, false, false, false, true});
}

TEST_CASE("a frozen embedding also freezes the unembedding that uses its table") {
  const Layers text = {embedding(0, 4), relu(), linear(4), unembedding()};
  const auto model = Model::build(text, kSoftmax, {5}, 7, 0, 5, {true, false, false, false});
  REQUIRE(model);
  CHECK((*model)->parameters()[0].frozen);
  CHECK_FALSE((*model)->has_weights(0));
  CHECK((*model)->has_weights(2));
  CHECK_FALSE((*model)->has_weights(3));
}

}  // namespace
