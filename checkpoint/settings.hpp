#pragma once
// Settings: when a run writes checkpoints, and how many of them it keeps.
#include <cstdint>
#include <variant>

namespace leeway::checkpoint {

struct EverySeconds {
  double seconds = 60;
};
struct EveryEpochs {
  double epochs = 1;
};
/// Of all workers together.
struct EveryIterations {
  std::uint64_t iterations = 1000;
};

struct Settings {
  std::variant<EverySeconds, EveryEpochs, EveryIterations> every;
  std::uint32_t keep = 3;  // the latest ones, at least 1
};

}  // namespace leeway::checkpoint
