#include "cluster/page_relay.hpp"

#include <chrono>
#include <utility>

namespace leeway {
namespace {

constexpr std::chrono::seconds kStateLimit(3);
/// More than the viewers of a page. The oldest requests are given up first.
constexpr std::size_t kMostRequests = 64;

}  // namespace

Expected<node::PageState> PageRelay::state(std::uint64_t since) {
  const auto answer = std::make_shared<Answer>();
  auto state = answer->get_future();
  process_.post([this, since, answer] {
    const std::uint64_t number = ++last_;
    if (!send_({.number = number, .since = since}))
      return answer->set_value(Error{"no job runs on this node"});
    if (waiting_.size() == kMostRequests) {
      waiting_.begin()->second->set_value(Error{"too many requests wait for the program"});
      waiting_.erase(waiting_.begin());
    }
    waiting_.emplace(number, answer);
  });
  if (state.wait_for(kStateLimit) != std::future_status::ready)
    return Error{"the program of the job does not answer"};
  return state.get();
}

void PageRelay::stop() {
  process_.post([this] { (void)send_({.number = ++last_, .stop = true}); });
}

void PageRelay::handle(node::PageState state) {
  const auto found = waiting_.find(state.number);
  if (found == waiting_.end()) return;
  const auto answer = std::move(found->second);
  waiting_.erase(found);
  if (state.problem.empty())
    answer->set_value(std::move(state));
  else
    answer->set_value(Error{state.problem});
}

void PageRelay::job_ended() {
  for (const auto& [number, answer] : std::exchange(waiting_, {}))
    answer->set_value(Error{"the job has ended"});
}

}  // namespace leeway
