#pragma once
// Roster: the members of a run by their state, and the number of the membership's present view.
//
// Each pipeline, host group or single worker is a member, named by its lead, the first of its
// workers. In the whole scheduler, `lead` names a member and `worker` any stage: a worker of a
// group counts as one.
#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "actors/scheduler/member.hpp"

namespace leeway {

class Roster {
 public:
  using State = Member::State;

  /// `later`: workers that may join after the run has begun, in addition to those that join by a
  /// fault of the plan. A member with such a worker starts in state gone.
  Roster(const Job& job, const std::set<WorkerId>& later);

  bool has(WorkerId worker) const { return worker.value() < workers_; }
  std::size_t size() const { return members_.size(); }
  const std::map<WorkerId, Member>& members() const { return members_; }
  Member& at(WorkerId lead) { return members_.at(lead); }
  const Member& at(WorkerId lead) const { return members_.at(lead); }
  Member& member_of(WorkerId worker) { return at(stages_->lead_of(worker)); }
  const Member& member_of(WorkerId worker) const { return at(stages_->lead_of(worker)); }
  Member::Stage& stage_of(WorkerId worker) {
    return member_of(worker).stages[stages_->stage_of(worker)];
  }
  const Member::Stage& stage_of(WorkerId worker) const {
    return at(stages_->lead_of(worker)).stages[stages_->stage_of(worker)];
  }
  /// The stages of a member, in order.
  std::vector<WorkerId> workers_of(WorkerId lead) const;

  /// Every change of a member's state goes through this.
  void enter(WorkerId lead, State state);
  /// Leads in ascending order.
  std::vector<WorkerId> in(std::initializer_list<State> states) const;
  std::size_t count(std::initializer_list<State> states) const;
  /// The members that get a share of each new round: running, or being admitted.
  const std::vector<WorkerId>& taking_part();

  View view() const { return view_; }
  /// Begins a new view of the membership.
  View next_view() { return view_ = View(view_.value() + 1); }

  /// The state of each member, for messages about a run that hangs.
  std::string describe() const;

 private:
  std::shared_ptr<const Stages> stages_;
  std::uint32_t workers_;
  std::map<WorkerId, Member> members_;
  View view_;

  // Derived from members_.
  std::array<std::set<WorkerId>, 8> in_state_;
  std::vector<WorkerId> taking_part_;  // as of the last call of taking_part()
  bool taking_part_changed_ = true;
};

}  // namespace leeway
