#include "actors/shard/round_buffer.hpp"

#include <algorithm>
#include <utility>

namespace leeway {

std::vector<Contribution> RoundBuffer::take(Iteration round) {
  auto node = rounds_.extract(round);
  return node ? std::move(node.mapped()) : std::vector<Contribution>();
}

void RoundBuffer::apply_below(Clock clock, PushSink& sink, Outbox& out) {
  while (!rounds_.empty() && rounds_.begin()->first.value() < clock.value()) {
    const Iteration round = rounds_.begin()->first;
    apply_round(round, take(round), sink, out);
  }
}

void RoundBuffer::forget(WorkerId worker, Iteration round, PushSink& sink) {
  const auto found = rounds_.find(round);
  if (found == rounds_.end()) return;
  std::erase_if(found->second, [&](const Contribution& push) {
    if (push.worker != worker) return false;
    sink.forget(push);
    return true;
  });
}

std::vector<Contribution> RoundBuffer::save() const {
  std::vector<Contribution> all;
  for (const auto& [round, pushes] : rounds_) all.insert(all.end(), pushes.begin(), pushes.end());
  return all;
}

void RoundBuffer::restore(const std::vector<Contribution>& pushes) {
  rounds_.clear();
  for (const Contribution& push : pushes) add(push);
}

void apply_round(Iteration round, std::vector<Contribution> pushes, PushSink& sink, Outbox& out) {
  std::stable_sort(pushes.begin(), pushes.end(), [](const Contribution& a, const Contribution& b) {
    return a.worker < b.worker;
  });
  std::map<std::uint32_t, std::vector<Contribution>> by_bucket;
  for (auto& push : pushes) by_bucket[push.shard_bucket].push_back(std::move(push));
  for (auto& [bucket, update] : by_bucket) sink.apply(std::move(update), out);
  sink.end_round(round, out);
}

}  // namespace leeway
