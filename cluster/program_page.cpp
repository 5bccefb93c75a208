#include "cluster/program_page.hpp"

#include <chrono>
#include <string>
#include <utility>

#include "core/limits.hpp"

namespace leeway {
namespace {

constexpr std::chrono::seconds kStateLimit(3);
/// Revisions begin anew with each job, so the upper bits of a viewer's revision are the job's.
constexpr int kRevisionBits = 48;
constexpr std::uint64_t kRevisionMask = (std::uint64_t{1} << kRevisionBits) - 1;
constexpr const char* kClosed = "the node ends";

}  // namespace

Expected<node::PageState> ProgramPage::state(std::uint64_t since) {
  const std::uint64_t job = job_;
  if (since > 0 && since >> kRevisionBits != job) return Error{"the job of this page has ended"};
  auto state = ask({.since = since & kRevisionMask});
  if (state) state->revision |= job << kRevisionBits;
  return state;
}

Status ProgramPage::stop() {
  const auto answer = ask({.stop = true});
  return answer ? Status() : Status(answer.error());
}

Expected<node::PageState> ProgramPage::ask(node::PageRequest request) {
  const auto answer = std::make_shared<Answer>();
  auto state = answer->get_future();
  if (closed_) return Error{kClosed};
  process_.post([this, request, answer]() mutable {
    request.number = ++last_;
    if (closed_) return answer->set_value(Error{kClosed});
    if (!send_(request)) return answer->set_value(Error{"no job runs on this node"});
    if (waiting_.size() == limits::kMaxPageRequests) {
      waiting_.begin()->second->set_value(Error{"too many requests wait for the program"});
      waiting_.erase(waiting_.begin());
    }
    waiting_.emplace(request.number, answer);
  });
  if (state.wait_for(kStateLimit) != std::future_status::ready)
    return Error{"the program of the job does not answer"};
  return state.get();
}

void ProgramPage::handle(node::PageState state) {
  const auto found = waiting_.find(state.number);
  if (found == waiting_.end()) return;
  const auto answer = std::move(found->second);
  waiting_.erase(found);
  if (state.problem.empty())
    answer->set_value(std::move(state));
  else
    answer->set_value(Error{state.problem});
}

void ProgramPage::job_ended() {
  ++job_;
  fail_all("the job has ended");
}

void ProgramPage::close() {
  closed_ = true;
  fail_all(kClosed);
}

void ProgramPage::fail_all(const std::string& reason) {
  for (const auto& [number, answer] : std::exchange(waiting_, {})) answer->set_value(Error{reason});
}

}  // namespace leeway
