#pragma once
// A small text and a transformer that learns it, with one label per token and tied weights.
#include "models/datasets/text.hpp"
#include "runtime/models.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {

/// 72 training windows of 9 characters: whole rounds for 2, 3 and 4 workers.
inline Plan text_plan() {
  register_data("small text", [](std::uint64_t) {
    std::string text;
    for (int i = 0; i < 722; ++i) text += static_cast<char>('a' + i * i % 7);
    return windows_of(text, {.context = 9}, "small text");
  });
  Plan plan = tiny_plan();
  plan.data = plan::CustomData{"small text"};
  plan.model = gpt({.layers = 1, .width = 8, .heads = 2, .dropout = 0.1});
  plan.consistency = plan::Bsp{};
  plan.optimizer = {0.05, 1e-3, plan::Momentum{0.9}};
  return plan;
}

}  // namespace leeway::test
