// The calls between the thread of a user's loop and its worker.
#include "actors/worker/user_loop.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <memory>

namespace leeway {
namespace {

UserCall push(std::int64_t iteration) {
  return {.kind = UserCall::Kind::push, .iteration = Iteration(iteration)};
}

/// Takes the next call as a worker does.
UserCall next_call(UserLoop& loop) {
  loop.wait();
  auto call = loop.take();
  REQUIRE(call);
  return std::move(*call);
}

}  // namespace

TEST_CASE("posted calls return at once, and come before the call that waits") {
  UserLoop loop;
  loop.allow_posts();
  // On this thread: a call that waited would never return.
  for (std::int64_t i = 0; i < 3; ++i) REQUIRE(loop.post(push(i)).over.empty());
  auto begun = std::async(std::launch::async, [&] { return loop.call({}); });
  for (std::int64_t i = 0; i < 3; ++i) {
    const UserCall call = next_call(loop);
    CHECK(call.kind == UserCall::Kind::push);
    CHECK(call.iteration == Iteration(i));
    loop.answer({.iteration = Iteration(99)});  // nothing waits for it
  }
  CHECK(next_call(loop).kind == UserCall::Kind::begin);
  loop.answer({.iteration = Iteration(7)});
  CHECK(begun.get().iteration == Iteration(7));
}

TEST_CASE("a posted call waits for its worker in a simulation, and if the worker is slowed down") {
  const bool is_simulated = GENERATE(false, true);
  std::shared_ptr<UserLoop> loop;
  std::future<void> thread;
  std::atomic<bool> is_handled = false, has_waited = false;
  const auto run = [&] {
    thread = std::async(std::launch::async, [&] {
      loop->post(push(0));
      has_waited = is_handled.load();
      loop->post(push(1));
      loop->finished();
    });
  };
  loop = std::make_shared<UserLoop>(is_simulated, run);
  if (is_simulated) loop->allow_posts();
  CHECK(next_call(*loop).iteration == Iteration(0));
  is_handled = true;
  loop->answer({});
  CHECK(next_call(*loop).iteration == Iteration(1));
  loop->answer({});
  loop->end_and_wait(UserLoop::End::run, "the run has ended");
  thread.get();
  CHECK(has_waited);
}

TEST_CASE("a loop that is over refuses posts, and drops those that were not taken") {
  UserLoop loop;
  loop.allow_posts();
  REQUIRE(loop.post(push(0)).over.empty());
  loop.end(UserLoop::End::worker, "its worker has ended");
  const UserAnswer answer = loop.post(push(1));
  CHECK(answer.over == "its worker has ended");
  CHECK(answer.lost);
  loop.wait();
  CHECK_FALSE(loop.take());
}

}  // namespace leeway
