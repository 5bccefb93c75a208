#pragma once
// Updaters: functions of a program that update the keys of a store on their shards.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

/// The update of a key, or of consecutive rows of a key that is split over several blocks.
struct UpdaterCall {
  std::string_view key;
  std::int64_t first = 0;           // floats of the key before these
  std::span<const float> gradient;  // the sum over the workers of a round, else one push
  std::span<float> weights;         // the present values on entry, the new values on return
  double weight = 1;  // samples of the gradient / samples of one round of all live workers
};
/// Runs on threads of shards, for several keys at once. An exception ends the shard.
using Updater = std::function<void(const UpdaterCall&)>;

/// Registers a function for plan::Updater{name}, in the process of the shards; a later registration
/// of the same name replaces it. Thread-safe. What the function refers to must exist while runs do.
void register_updater(const std::string& name, Updater update);
/// The error lists the names that this process has registered.
Expected<Updater> find_updater(const std::string& name);

}  // namespace leeway
