#include "actors/worker/user_loop.hpp"

#include <utility>

#include "core/check.hpp"

namespace leeway {

// ---- the user's thread ----

UserAnswer UserLoop::call(UserCall call) {
  std::unique_lock lock(mutex_);
  if (over_) return *over_;
  LW_CHECK(!waiting_, "one thread calls at a time");
  calls_.push_back(std::move(call));
  waiting_ = true;
  may_run_ = !simulated_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return (answer_ && may_run_) || over_; });
  waiting_ = false;
  if (answer_) return *std::exchange(answer_, std::nullopt);
  return *over_;
}

UserAnswer UserLoop::post(UserCall call) {
  {
    std::lock_guard lock(mutex_);
    if (over_) return *over_;
    if (posts_) {
      calls_.push_back(std::move(call));
      changed_.notify_all();
      return {};
    }
  }
  return this->call(std::move(call));
}

void UserLoop::finished() {
  std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

// ---- the worker ----

void UserLoop::allow_posts() {
  std::lock_guard lock(mutex_);
  posts_ = !simulated_;
}

void UserLoop::wait() {
  if (const auto start = std::exchange(start_, nullptr)) start();
  std::unique_lock lock(mutex_);
  may_run_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !calls_.empty() || is_over(); });
}

std::optional<UserCall> UserLoop::take() {
  std::lock_guard lock(mutex_);
  if (over_ || calls_.empty()) return std::nullopt;
  UserCall call = std::move(calls_.front());
  calls_.pop_front();
  return call;
}

void UserLoop::answer(UserAnswer answer) {
  std::lock_guard lock(mutex_);
  const bool was_posted = !waiting_ || !calls_.empty();
  if (over_ || was_posted) return;
  LW_CHECK(!answer_, "a call has one answer");
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
