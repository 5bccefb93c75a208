#include "runtime/interrupt.hpp"

#include <atomic>
#include <csignal>
#include <mutex>

namespace leeway {
namespace {

std::atomic<bool> interrupted_flag = false;
static_assert(decltype(interrupted_flag)::is_always_lock_free);  // the signal handler writes it

std::mutex guards_mutex;  // guards the variables below
int guards = 0;
struct sigaction earlier_int;
struct sigaction earlier_term;

void on_signal(int) {
  interrupted_flag = true;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  std::lock_guard lock(guards_mutex);
  if (guards++ > 0) return;
  interrupted_flag = false;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  // The handler runs only once, so a second signal ends a program that does not stop.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, &earlier_int);
  sigaction(SIGTERM, &action, &earlier_term);
}

InterruptGuard::~InterruptGuard() {
  std::lock_guard lock(guards_mutex);
  if (--guards > 0) return;
  sigaction(SIGINT, &earlier_int, nullptr);
  sigaction(SIGTERM, &earlier_term, nullptr);
}

bool InterruptGuard::interrupted() const {
  return interrupted_flag;
}

}  // namespace leeway
