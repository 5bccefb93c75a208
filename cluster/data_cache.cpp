#include "cluster/data_cache.hpp"

#include "cluster/shipped.hpp"
#include "models/datasets/load.hpp"

namespace leeway {
namespace {

constexpr std::size_t kMostSets = 2;

}  // namespace

std::optional<TrainTest> DataCache::find(const Plan& plan, const node::DataMark& mark) {
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (!(it->mark == mark)) continue;
    entries_.splice(entries_.begin(), entries_, it);
    return entries_.front().data;
  }
  // If this machine has no such file, another file, or does not know the data set, the program
  // sends the data.
  auto data = load_data(plan.data, plan.seed);
  if (!data || !(mark_of(*data) == mark)) return std::nullopt;
  keep(mark, *data);
  return std::move(*data);
}

void DataCache::keep(const node::DataMark& mark, TrainTest data) {
  entries_.push_front({mark, std::move(data)});
  if (entries_.size() > kMostSets) entries_.pop_back();
}

}  // namespace leeway
