#include "runtime/interrupt.hpp"

#include <csignal>

namespace leeway {
namespace {

volatile std::sig_atomic_t interrupted_flag = 0;
struct sigaction earlier_int;
struct sigaction earlier_term;

void on_signal(int) {
  interrupted_flag = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted_flag = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  // The handler serves once: a second signal ends a program that does not come to its end.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, &earlier_int);
  sigaction(SIGTERM, &action, &earlier_term);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &earlier_int, nullptr);
  sigaction(SIGTERM, &earlier_term, nullptr);
}

bool InterruptGuard::interrupted() const {
  return interrupted_flag != 0;
}

}  // namespace leeway
