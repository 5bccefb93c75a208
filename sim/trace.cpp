#include "sim/trace.hpp"

#include <cstring>

#include "core/rng.hpp"
#include "core/text.hpp"
#include "messages/event_queries.hpp"
#include "sim/words.hpp"

namespace leeway::sim {

namespace {

std::uint64_t number(Address address) {
  return std::uint64_t{static_cast<std::uint8_t>(address.kind)} << 32 | address.index;
}

/// The hash of all bytes of a message, with tensor data if it is in host memory.
std::uint64_t contents_of(const Message& message) {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : message.header()) hash = mix64(hash ^ word);
  for (const Blob& blob : message.blobs()) {
    const auto bytes = blob.bytes();
    std::size_t i = 0;
    for (; i + sizeof(std::uint64_t) <= bytes.size(); i += sizeof(std::uint64_t)) {
      std::uint64_t word;
      std::memcpy(&word, bytes.data() + i, sizeof word);
      hash = mix64(hash ^ word);
    }
    for (; i < bytes.size(); ++i) hash = mix64(hash ^ static_cast<std::uint64_t>(bytes[i]));
  }
  return hash;
}

}  // namespace

void Trace::step(std::uint64_t what, Instant at, Address a, Address b, std::uint64_t detail,
                 std::uint64_t contents) {
  for (const std::uint64_t part :
       {what, static_cast<std::uint64_t>(at.ns), number(a), number(b), detail})
    protocol_ = mix64(protocol_ ^ part);
  numeric_ = mix64(numeric_ ^ protocol_ ^ contents);
  ++steps_;
  if (options_.keep) kept_.push_back({protocol_, numeric_});
}

void Trace::delivered(Instant at, Address from, Address to, const Message& message) {
  // The length distinguishes most kinds of messages. Contents may include losses, which depend on
  // the processor.
  const std::uint64_t contents = options_.keep ? contents_of(message) : 0;
  if (describes())
    description_ = concat(in_words(at), "  ", from, " -> ", to, ": ", in_words(message),
                          ", contents ", std::hex, contents);
  step(1, at, from, to, message.header().size(), contents);
}

void Trace::timer(Instant at, Address actor, TimerToken token) {
  if (describes()) description_ = concat(in_words(at), "  ", actor, ": timer ", token);
  step(2, at, actor, actor, token, 0);
}

void Trace::computed(Instant at, Address actor, int part) {
  if (describes()) description_ = concat(in_words(at), "  ", actor, ": part ", part, " computed");
  step(3, at, actor, actor, static_cast<std::uint64_t>(part), 0);
}

void Trace::down(Instant at, Address watcher, Address actor) {
  if (describes())
    description_ = concat(in_words(at), "  ", watcher, " learns that ", actor, " has ended");
  step(4, at, watcher, actor, 0, 0);
}

void Trace::linked(Instant at, Address actor, Address peer) {
  if (describes())
    description_ = concat(in_words(at), "  ", actor, " is connected to ", peer, " again");
  step(6, at, actor, peer, 0, 0);
}

void Trace::event(Instant at, Address actor, const Event& event) {
  if (describes()) description_ = concat(in_words(at), "  ", actor, ": ", in_words(event));
  step(5, at, actor, actor, hash_of(event), 0);
}

}  // namespace leeway::sim
