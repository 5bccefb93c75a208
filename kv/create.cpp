#include "kv/create.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.hpp"
#include "kv/launched_worker.hpp"
#include "kv/local_store.hpp"
#include "runtime/flags/values.hpp"

namespace leeway::kv {

Expected<plan::Consistency> policy_of(const std::string& type) {
  constexpr std::string_view kPrefix = "dist_";
  const Error unknown{concat("store type \"", type,
                             "\": give local, dist_sync, dist_async, dist_ssp(S), dist_backup(B), "
                             "dist_quorum(K,GRACE), dist_adaptive(LOW,HIGH) or dist_auto")};
  if (!type.starts_with(kPrefix)) return unknown;
  const std::string name = type.substr(kPrefix.size());
  if (name == "sync") return plan::Consistency(plan::Bsp{});
  if (name == "async") return plan::Consistency(plan::Asp{});
  const bool is_ssp = name.starts_with("ssp(") && name.ends_with(')');
  constexpr std::string_view kPolicies[] = {"backup(", "quorum(", "adaptive(", "auto"};
  if (!is_ssp && std::ranges::none_of(kPolicies, [&](auto one) { return name.starts_with(one); }))
    return unknown;
  auto policy = parse_staleness(is_ssp ? name.substr(4, name.size() - 5) : name);
  if (policy && is_ssp && !std::holds_alternative<plan::Ssp>(*policy)) return unknown;
  if (!policy) return Error{concat("store type \"", type, "\": ", policy.error().text)};
  return policy;
}

Store Store::create(const std::string& type, const StoreOptions& options) {
  if (options.samples < 0 || options.batch < 1 || !(options.epochs > 0) ||
      !std::isfinite(options.epochs))
    throw StoreError(concat("store \"", type, "\": ", options.samples, " samples, a batch of ",
                            options.batch, " and ", options.epochs,
                            " epochs make no ranges; give a batch of 1 or more and more than 0 "
                            "epochs"));
  if (type == "local") return Store(std::make_unique<LocalStore>(options));
  auto policy = policy_of(type);
  if (!policy) throw StoreError(policy.error().text);
  auto site = LaunchedWorker::open({.consistency = *policy,
                                    .samples = options.samples,
                                    .batch = options.batch,
                                    .epochs = options.epochs,
                                    .seed = options.seed});
  if (!site) throw StoreError(site.error().text);
  auto state = std::make_unique<SharedStore>(**site, (*site)->worker(), (*site)->loop());
  return Store(std::move(state), *site);
}

}  // namespace leeway::kv
