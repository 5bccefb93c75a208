#include "actors/worker/user_loop.hpp"

#include <utility>

#include "core/check.hpp"

namespace leeway {

// ---- the user's thread ----

UserAnswer UserLoop::call(UserCall call) {
  std::unique_lock lock(mutex_);
  if (over_) return *over_;
  LW_CHECK(!waiting_, "one thread calls at a time");
  call_ = std::move(call);
  waiting_ = true;
  may_run_ = !simulated_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return (answer_ && may_run_) || over_; });
  waiting_ = false;
  if (answer_) return *std::exchange(answer_, std::nullopt);
  return *over_;
}

void UserLoop::finished() {
  std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

// ---- the worker ----

void UserLoop::wait() {
  if (const auto start = std::exchange(start_, nullptr)) start();
  std::unique_lock lock(mutex_);
  may_run_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return call_ || is_over(); });
}

std::optional<UserCall> UserLoop::take() {
  std::lock_guard lock(mutex_);
  if (over_) return std::nullopt;
  return std::exchange(call_, std::nullopt);
}

void UserLoop::answer(UserAnswer answer) {
  std::lock_guard lock(mutex_);
  if (over_) return;
  LW_CHECK(waiting_ && !call_ && !answer_, "only a call that was taken is answered");
  answer_ = std::move(answer);
  changed_.notify_all();
}

void UserLoop::end_and_wait(End what, const std::string& why) {
  end(what, why);
  if (!simulated_) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_over(); });
}

// ---- both ----

void UserLoop::end(End what, const std::string& why) {
  std::lock_guard lock(mutex_);
  if (!over_) over_ = UserAnswer{.over = why, .lost = what == End::worker};
  changed_.notify_all();
}

}  // namespace leeway
