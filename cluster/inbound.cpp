#include "cluster/inbound.hpp"

#include <algorithm>
#include <shared_mutex>

#include "core/check.hpp"
#include "core/limits.hpp"

namespace leeway::cluster {

std::span<std::byte> Arrival::next_piece(std::uint64_t most) {
  LW_CHECK(most > 0 && most <= left, most, left);
  while (next.offset == sizes[next.blob]) next = {next.blob + 1, 0};
  Blob& blob = blobs[next.blob];
  if (!blob) blob = Blob::allocate(sizes[next.blob]);
  const std::uint64_t count = std::min(most, sizes[next.blob] - next.offset);
  const std::span piece(blob.mutable_data() + next.offset, count);
  next.offset += count;
  left -= count;
  return piece;
}

Message Arrival::message() {
  return Message(header, std::move(blobs));
}

bool Inbound::begin(std::uint64_t number, std::shared_ptr<Arrival> arrival) {
  std::lock_guard lock(mutex_);
  return arrivals_.size() < limits::kMaxArrivals &&
         arrivals_.emplace(number, std::move(arrival)).second;
}

std::shared_ptr<Arrival> Inbound::find(std::uint64_t number) const {
  std::lock_guard lock(mutex_);
  const auto found = arrivals_.find(number);
  return found == arrivals_.end() ? nullptr : found->second;
}

void Inbound::end(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  arrivals_.erase(number);
}

namespace inbounds {
namespace {

struct All {
  std::shared_mutex mutex;
  std::map<Token, std::shared_ptr<Inbound>> by_token;
};
All& all() {
  static All* const everything = new All;  // connections may end after main() has
  return *everything;
}

}  // namespace

std::shared_ptr<Inbound> open(Token token) {
  auto inbound = std::make_shared<Inbound>(token);
  std::lock_guard lock(all().mutex);
  LW_CHECK(all().by_token.emplace(token, inbound).second);
  return inbound;
}

std::shared_ptr<Inbound> find(Token token) {
  std::shared_lock lock(all().mutex);
  const auto found = all().by_token.find(token);
  return found == all().by_token.end() ? nullptr : found->second;
}

void close(Token token) {
  std::lock_guard lock(all().mutex);
  all().by_token.erase(token);
}

}  // namespace inbounds
}  // namespace leeway::cluster
