#include "sim/checkers/weights.hpp"

#include <algorithm>
#include <cstring>

#include "core/rng.hpp"

namespace leeway::sim {

namespace {

/// A hash of words spread over each blob; an update changes nearly all words.
std::uint64_t sparse_hash_of(const Message& message) {
  constexpr std::size_t kSamples = 16;
  std::uint64_t hash = message.blobs().size();
  for (const Blob& blob : message.blobs()) {
    if (blob.device().kind == Device::Kind::cuda) continue;
    const std::size_t words = blob.size() / sizeof(std::uint32_t);
    const std::size_t stride = words / kSamples + 1;
    for (std::size_t i = 0; i < words; i += stride) {
      std::uint32_t word;
      std::memcpy(&word, blob.data() + i * sizeof word, sizeof word);
      hash = mix64(hash ^ word);
    }
  }
  return hash;
}

}  // namespace

void WeightsChecker::on_sent(Instant, const Letter& letter) {
  if (letter.message().blobs().empty()) return;
  auto& in_flight = in_flight_[letter.message().header().data()];
  in_flight.message = letter.message();
  in_flight.contents = sparse_hash_of(letter.message());
  ++in_flight.times;
}

void WeightsChecker::check_contents(const Letter& letter) {
  const auto found = in_flight_.find(letter.message().header().data());
  if (found == in_flight_.end()) return;
  if (found->second.contents != sparse_hash_of(letter.message()))
    violated({letter.from(), letter.to()}, "tensors of a message were modified in flight");
  if (--found->second.times == 0) in_flight_.erase(found);
}

void WeightsChecker::on_delivered(Instant, const Letter& letter) {
  if (!letter.message().blobs().empty()) check_contents(letter);
  if (letter.to().kind == RoleKind::worker && letter.from().kind == RoleKind::shard) {
    const auto* weights = letter.as<msg::Weights>();
    if (!weights) return;
    auto& pulled = pulled_.at(letter.from(), WorkerId(letter.to().index))[letter.open()->session];
    if (weights->iteration < pulled.from) return;  // a repeat
    const auto [versions, fresh] = pulled.versions.try_emplace(weights->iteration);
    // The worker uses the first answer to its newest pull.
    if (!fresh && weights->number <= versions->second.pull) return;
    versions->second = {weights->number, {}};
    for (const auto& block : weights->blocks)
      versions->second.of.emplace_back(block.block, block.version);
  } else if (letter.to().kind == RoleKind::shard && letter.from().kind == RoleKind::worker) {
    const auto* push = letter.as<msg::Push>();
    if (push && push->kind != msg::Push::Kind::empty) check_push(letter, *push);
  }
}

void WeightsChecker::check_push(const Letter& letter, const msg::Push& push) {
  auto& pulled = pulled_.at(letter.to(), WorkerId(letter.from().index))[letter.open()->session];
  if (push.iteration < pulled.from) return;  // a repeat
  const auto found = pulled.versions.lower_bound(push.iteration);
  if (found == pulled.versions.end() || (!asynchronous_ && found->first != push.iteration))
    violated({letter.from(), letter.to()}, "a gradient of iteration ", push.iteration,
             ", whose weights never arrived");
  for (const auto& gradient : push.blocks)
    if (!pulled.has(push.iteration, asynchronous_, {gradient.block, gradient.version}))
      violated({letter.from(), letter.to()}, "the gradient of block ", gradient.block,
               " in iteration ", push.iteration, " is of version ", gradient.version,
               ", which was not pulled for it");
  pulled.from = push.iteration;
  pulled.versions.erase(pulled.versions.begin(), found);
}

bool WeightsChecker::Pulled::has(Iteration iteration, bool or_later,
                                 std::pair<BlockId, Version> of) const {
  for (auto pull = versions.lower_bound(iteration); pull != versions.end(); ++pull) {
    if (std::ranges::find(pull->second.of, of) != pull->second.of.end()) return true;
    if (!or_later) return false;
  }
  return false;
}

}  // namespace leeway::sim
