#include "core/fifo.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <memory>

#include "core/rng.hpp"

using namespace leeway;

TEST_CASE("a Fifo behaves like a deque") {
  Rng rng(1);
  Fifo<int> fifo;
  std::deque<int> deque;
  for (int i = 0; i < 20'000; ++i) {
    // Phases of growth alternate with phases in which the queue empties.
    if (rng.below(1000) < static_cast<std::uint64_t>(i / 1000 % 2 ? 600 : 400)) {
      fifo.push_back(i);
      deque.push_back(i);
    } else if (!deque.empty()) {
      CHECK(fifo.front() == deque.front());
      fifo.pop_front();
      deque.pop_front();
    }
    if (rng.below(2000) == 0) {
      fifo.clear();
      deque.clear();
    }
    REQUIRE(fifo.size() == deque.size());
    REQUIRE(fifo.empty() == deque.empty());
    if (i % 100 == 0) CHECK(std::equal(fifo.begin(), fifo.end(), deque.begin(), deque.end()));
  }
}

TEST_CASE("a Fifo destroys an item as soon as it is popped") {
  Fifo<std::shared_ptr<int>> fifo;
  const auto held = std::make_shared<int>(1);
  for (int i = 0; i < 3; ++i) fifo.push_back(held);
  fifo.pop_front();
  CHECK(held.use_count() == 3);
  fifo.clear();
  CHECK(held.use_count() == 1);
}
