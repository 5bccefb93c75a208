#pragma once
// Small models of each kind, for tests of chunks.
#include "runtime/models.hpp"
#include "tests/actors/chunk_pipeline.hpp"

namespace leeway::test {

inline constexpr int kVocabulary = 7;

inline Task mlp_task(std::int64_t size = 11) {
  return {classifier({linear(12), relu(), linear(10), dropout(0.3), tanh_layer(), linear(9),
                      layer_norm(), gelu(), linear(3)},
                     {5}, 3),
          size};
}
inline Task conv_task() {
  return {classifier({conv2d(6, 3), batch_norm(), relu(), max_pool(2), conv2d(8, 3, {.padding = 1}),
                      relu(), flatten(), linear(9), batch_norm(), sigmoid_layer(), linear(3)},
                     {2, 10, 10}, 3),
          11};
}
inline Task residual_task() {
  return {
      classifier({conv2d(4, 3, {.padding = 1}), residual_block(4, 1), relu(), residual_block(8, 2),
                  residual({relu(), conv2d(8, 1)}), residual({}, {dropout(0.2)}), relu(),
                  residual_block(8, 1), global_avg_pool(), flatten(), linear(3)},
                 {1, 8, 8}, 3),
      11};
}
inline Task text_task(bool tied) {
  constexpr std::int64_t kContext = 6;
  Layers layers = gpt({.layers = 2, .width = 8, .heads = 2, .dropout = 0.2});
  if (!tied) layers.back() = plan::Linear{kVocabulary, plan::Init::xavier, false};
  auto model =
      Model::build(layers, plan::Loss::softmax_cross_entropy, {kContext}, kVocabulary, 0, kContext);
  LW_CHECK(model.has_value(), model ? "" : model.error().text);
  return {*model, 11, kVocabulary};
}
inline Task regression_task(plan::Loss loss) {
  return {built({linear(6), tanh_layer(), linear(4), flatten()}, loss, {5}, 0, 4), 11};
}

}  // namespace leeway::test
