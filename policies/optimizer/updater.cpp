#include "policies/optimizer/updater.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "core/check.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

struct Updaters {
  std::mutex mutex;
  std::map<std::string, Updater> updaters;
};

Updaters& registered_updaters() {
  static Updaters all;
  return all;
}

}  // namespace

void register_updater(const std::string& name, Updater update) {
  LW_CHECK(!name.empty() && update, name);
  auto& [mutex, updaters] = registered_updaters();
  std::lock_guard lock(mutex);
  updaters[name] = std::move(update);
}

Expected<Updater> find_updater(const std::string& name) {
  auto& [mutex, updaters] = registered_updaters();
  std::lock_guard lock(mutex);
  if (const auto found = updaters.find(name); found != updaters.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& entry : updaters) known.push_back(entry.first);
  return Error{concat("the updater \"", name, "\" is not registered in this process",
                      known.empty() ? "; call register_updater before the run"
                                    : concat(", which has ", join(known, ", ")))};
}

}  // namespace leeway
