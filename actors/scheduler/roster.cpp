#include "actors/scheduler/roster.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "plan/fault_queries.hpp"

namespace leeway {

Roster::Roster(const Job& job, const std::set<WorkerId>& later)
    : stages_(job.stages), workers_(job.plan.workers) {
  const auto is_later = [&](WorkerId worker) {
    return later.contains(worker) || joins_later(job.faults, address_of(worker));
  };
  for (std::uint32_t index = 0; index < stages_->pipelines(); ++index) {
    const WorkerId lead(index * stages_->count());
    members_[lead].stages.resize(stages_->count());
    members_[lead].clock = Clock(job.first_iteration(index).value());
    const auto workers = workers_of(lead);
    const bool comes_later = std::any_of(workers.begin(), workers.end(), is_later);
    enter(lead, comes_later ? State::gone : State::absent);
    if (!comes_later) continue;
    for (const WorkerId worker : workers) {
      stage_of(worker).nonce = {};
      stage_of(worker).ended = is_later(worker);
    }
  }
}

std::vector<WorkerId> Roster::workers_of(WorkerId lead) const {
  std::vector<WorkerId> workers;
  for (std::uint32_t stage = 0; stage < stages_->count(); ++stage)
    workers.push_back(stages_->worker(lead, stage));
  return workers;
}

void Roster::enter(WorkerId lead, State state) {
  auto& member = at(lead);
  in_state_[static_cast<std::size_t>(member.state)].erase(lead);
  in_state_[static_cast<std::size_t>(state)].insert(lead);
  const auto has_share = [](State one) { return one == State::running || one == State::admitting; };
  taking_part_changed_ |= has_share(member.state) != has_share(state);
  member.state = state;
}

std::vector<WorkerId> Roster::in(std::initializer_list<State> states) const {
  std::vector<WorkerId> found;
  for (const State state : states) {
    const auto& members = in_state_[static_cast<std::size_t>(state)];
    found.insert(found.end(), members.begin(), members.end());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::size_t Roster::count(std::initializer_list<State> states) const {
  std::size_t count = 0;
  for (const State state : states) count += in_state_[static_cast<std::size_t>(state)].size();
  return count;
}

const std::vector<WorkerId>& Roster::taking_part() {
  if (taking_part_changed_) taking_part_ = in({State::running, State::admitting});
  taking_part_changed_ = false;
  return taking_part_;
}

std::string Roster::describe() const {
  constexpr std::string_view kStates[] = {"absent", "joined",  "admitting", "running",
                                          "idle",   "fencing", "gone",      "stopped"};
  std::string text;
  for (const auto& [lead, member] : members_) {
    text += concat(", worker ", lead, ' ', kStates[static_cast<std::size_t>(member.state)]);
    if (!stages_->has_several()) continue;
    for (const WorkerId worker : workers_of(lead)) {
      const auto& stage = stage_of(worker);
      const bool waits = stage.joined && !member.has_started();
      text += concat(worker == lead ? (stages_->piped() ? " (stages" : " (workers") : "",
                     worker == lead ? " " : ", ",
                     stage.ended     ? "ended"
                     : stage.stopped ? "stopped"
                     : stage.idle    ? "idle"
                     : waits         ? "waits"
                                     : "there");
    }
    text += ')';
  }
  return text;
}

}  // namespace leeway
