#include "actors/shard/acknowledgements.hpp"

#include <algorithm>
#include <iterator>

#include "messages/envelope.hpp"

namespace leeway {

void Acknowledgements::expect(const Contribution& push) {
  const auto [entry, first] = expected_.try_emplace({push.worker, push.session});
  entry->second.emplace_back(push.iteration, push.bucket);
  if (!first || entry == expected_.begin()) return;
  // The worker was idle before.
  const auto before = std::prev(entry);
  if (before->first.first == push.worker && before->second.empty()) expected_.erase(before);
}

bool Acknowledgements::is_expected(const Contribution& push) const {
  const auto found = expected_.find({push.worker, push.session});
  if (found == expected_.end()) return false;
  const auto& pushes = found->second;
  return std::find(pushes.begin(), pushes.end(), std::pair(push.iteration, push.bucket)) !=
         pushes.end();
}

void Acknowledgements::forget(const Contribution& push) {
  const auto found = expected_.find({push.worker, push.session});
  if (found == expected_.end()) return;
  std::erase(found->second, std::pair(push.iteration, push.bucket));
  // A session that takes part is about to push again.
  if (found->second.empty() && !clocks_.may_push(push.worker, push.session)) expected_.erase(found);
}

std::vector<msg::ExpectedPush> Acknowledgements::save() const {
  std::vector<msg::ExpectedPush> all;
  for (const auto& [of, pushes] : expected_)
    for (const auto& [iteration, bucket] : pushes)
      all.push_back({of.first, of.second, iteration, bucket});
  return all;
}

void Acknowledgements::restore(const std::vector<msg::ExpectedPush>& pushes) {
  expected_.clear();
  for (const auto& push : pushes)
    expected_[{push.worker, push.session}].emplace_back(push.iteration, push.bucket);
}

void Acknowledgements::applied(const Contribution& push, Outbox& out, bool skipped) {
  forget(push);
  out.emit(event::BucketApplied{.worker = push.worker,
                                .session = push.session,
                                .iteration = push.iteration,
                                .bucket = push.bucket,
                                .samples = push.samples,
                                .skipped = skipped && push.samples > 0});
  acknowledge(push, false, skipped && !push.is_empty(), out);
}

void Acknowledgements::acknowledge(const Contribution& push, bool repeat, bool dropped,
                                   Outbox& out) {
  if (!clocks_.may_push(push.worker, push.session)) return;
  out.send(address_of(push.worker),
           encode({.session = push.session,
                   .body = msg::Pushed{push.iteration, push.bucket,
                                       msg::Pushed::Durability::applied, repeat, dropped}}));
}

}  // namespace leeway
