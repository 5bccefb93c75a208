// The simulator's queue of due events, slots and address map.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "core/rng.hpp"
#include "sim/address_map.hpp"
#include "sim/due_queue.hpp"
#include "sim/slots.hpp"

namespace leeway::sim {

TEST_CASE("due events come in order of time, and of insertion if times are equal") {
  Rng rng(1);
  DueQueue queue;
  std::vector<std::pair<Instant, std::uint32_t>> waiting;
  std::uint32_t next_slot = 0;
  for (int i = 0; i < 5000; ++i) {
    if (waiting.empty() || rng.below(100) < (i < 2500 ? 60u : 40u)) {
      const Instant at{static_cast<std::int64_t>(rng.below(50))};
      queue.push(at, next_slot);
      waiting.emplace_back(at, next_slot++);
      continue;
    }
    const auto first =
        std::min_element(waiting.begin(), waiting.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
    REQUIRE(queue.next_at() == first->first);
    REQUIRE(queue.next_slot() == first->second);
    queue.pop();
    waiting.erase(first);
    REQUIRE(queue.empty() == waiting.empty());
  }
}

TEST_CASE("a slot keeps its item until it is taken, and its number is reused") {
  Slots<std::string> slots;
  CHECK(slots.empty());
  const auto one = slots.put("one"), two = slots.put("two");
  REQUIRE(one != two);
  CHECK(slots.at(one) == "one");
  CHECK(slots.take(one) == "one");
  CHECK_FALSE(slots.empty());
  CHECK(slots.put("three") == one);
  CHECK(slots.at(one) == "three");
  CHECK(slots.at(two) == "two");
  slots.erase(one);
  slots.erase(two);
  CHECK(slots.empty());
}

TEST_CASE("an address has its own number or no number") {
  AddressMap numbers;
  numbers.set(address_of(WorkerId(3)), 7);
  numbers.set(address_of(ShardId(3)), 8);
  CHECK(numbers.find(address_of(WorkerId(3))) == 7);
  CHECK(numbers.find(address_of(ShardId(3))) == 8);
  for (const Address unknown : {address_of(WorkerId(2)), address_of(WorkerId(4)), kScheduler, kHost,
                                address_of(WorkerId(~std::uint32_t{0}))})
    CHECK(numbers.find(unknown) == AddressMap::kNone);
}

}  // namespace leeway::sim
