#include "actors/shard/acknowledgements.hpp"

#include <algorithm>

#include "messages/envelope.hpp"

namespace leeway {

void Acknowledgements::expect(const Contribution& push) {
  expected_[{push.worker, push.incarnation}].emplace_back(push.iteration, push.bucket);
}

bool Acknowledgements::is_expected(const Contribution& push) const {
  const auto found = expected_.find({push.worker, push.incarnation});
  if (found == expected_.end()) return false;
  const auto& pushes = found->second;
  return std::find(pushes.begin(), pushes.end(), std::pair(push.iteration, push.bucket)) !=
         pushes.end();
}

void Acknowledgements::forget(const Contribution& push) {
  const auto found = expected_.find({push.worker, push.incarnation});
  if (found == expected_.end()) return;
  std::erase(found->second, std::pair(push.iteration, push.bucket));
  // An incarnation that takes part is about to push again.
  if (found->second.empty() && !clocks_.may_push(push.worker, push.incarnation))
    expected_.erase(found);
}

void Acknowledgements::applied(const Contribution& push, Outbox& out) {
  forget(push);
  out.emit(event::BucketApplied{.worker = push.worker,
                                .incarnation = push.incarnation,
                                .iteration = push.iteration,
                                .bucket = push.bucket,
                                .samples = push.samples});
  acknowledge(push, false, out);
}

void Acknowledgements::acknowledge(const Contribution& push, bool repeat, Outbox& out) {
  if (!clocks_.may_push(push.worker, push.incarnation)) return;
  out.send(address_of(push.worker),
           encode({.incarnation = push.incarnation,
                   .body = msg::Pushed{push.iteration, push.bucket,
                                       msg::Pushed::Durability::applied, repeat}}));
}

}  // namespace leeway
