#include "actors/worker/user_loop.hpp"

#include <utility>

#include "core/check.hpp"

namespace leeway {

UserAnswer UserLoop::call(UserCall call) {
  std::unique_lock lock(mutex_);
  if (over_) return {.over = *over_};
  LW_CHECK(!waiting_, "one thread calls at a time");
  call_ = std::move(call);
  waiting_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return answer_ || over_; });
  waiting_ = false;
  if (answer_) return *std::exchange(answer_, std::nullopt);
  return {.over = *over_};
}

void UserLoop::wait() {
  if (const auto start = std::exchange(start_, nullptr)) start();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return call_ || over_; });
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

void UserLoop::end(const std::string& why) {
  std::lock_guard lock(mutex_);
  if (!over_) over_ = why;
  changed_.notify_all();
}

bool UserLoop::is_over() const {
  std::lock_guard lock(mutex_);
  return over_.has_value();
}

}  // namespace leeway
