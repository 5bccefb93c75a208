#include "policies/straggler/custom.hpp"

#include <map>
#include <mutex>
#include <vector>

#include "core/text.hpp"

namespace leeway {
namespace {

struct Slowdowns {
  std::mutex mutex;
  std::map<std::string, SlowdownFunction> functions;
};

Slowdowns& registered_slowdowns() {
  static Slowdowns registry;
  return registry;
}

}  // namespace

void register_straggler(const std::string& name, SlowdownFunction function) {
  LW_CHECK(!name.empty() && function, name);
  auto& [mutex, functions] = registered_slowdowns();
  std::lock_guard lock(mutex);
  functions[name] = std::move(function);
}

Expected<SlowdownFunction> find_slowdown(const std::string& name) {
  auto& [mutex, functions] = registered_slowdowns();
  std::lock_guard lock(mutex);
  if (const auto found = functions.find(name); found != functions.end()) return found->second;
  if (functions.empty())
    return Error{concat("straggler \"", name,
                        "\" is not registered; call register_straggler before the run")};
  std::vector<std::string> known;
  for (const auto& [one, function] : functions) known.push_back(one);
  return Error{concat("straggler \"", name, "\" is not registered", suggest(name, known))};
}

CustomStraggler::CustomStraggler(const plan::CustomStraggler& spec, Rng rng)
    : name_(spec.function), seed_(rng.next()) {
  auto function = find_slowdown(spec.function);
  LW_CHECK(bool(function), function ? std::string() : function.error().text);
  function_ = std::move(*function);
}

Slowdown CustomStraggler::next(Instant now) {
  Rng random = Rng::stream(seed_, iteration_);
  const auto iteration = static_cast<std::int64_t>(iteration_++);
  const double factor = function_(iteration, (now - Instant{}).seconds(), random);
  LW_CHECK(factor >= 1 && factor <= plan::kMaxSlowdown, "the straggler's function must return 1 to",
           plan::kMaxSlowdown, name_, iteration, factor);
  return {.factor = factor};
}

}  // namespace leeway
