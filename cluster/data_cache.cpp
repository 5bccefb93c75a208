#include "cluster/data_cache.hpp"

#include "cluster/shipped.hpp"
#include "models/datasets/load.hpp"

namespace leeway {
namespace {

constexpr std::size_t kMostSets = 2;

}  // namespace

std::optional<TrainTest> load_matching(const Plan& plan, const node::DataMark& mark) {
  auto data = load_data(plan.data, plan.seed);
  // This machine may have no such file, another file, or not know the data set.
  if (!data || !(mark_of(*data) == mark)) return std::nullopt;
  return std::move(*data);
}

std::optional<TrainTest> DataCache::find(const node::DataMark& mark) {
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (!(it->mark == mark)) continue;
    entries_.splice(entries_.begin(), entries_, it);
    return entries_.front().data;
  }
  return std::nullopt;
}

void DataCache::keep(const node::DataMark& mark, TrainTest data) {
  entries_.remove_if([&](const Entry& entry) { return entry.mark == mark; });
  entries_.push_front({mark, std::move(data)});
  if (entries_.size() > kMostSets) entries_.pop_back();
}

}  // namespace leeway
