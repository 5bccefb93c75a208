#pragma once
// GroupChecker: the lead of a host group pushes the gradients of all samples of its iteration.
#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

class GroupChecker final : public Checker {
 public:
  explicit GroupChecker(std::shared_ptr<const Job> job);
  void on_event(Instant at, Address actor, const Event& event) override;
  void on_sent(Instant at, const Letter& letter) override;
  void on_delivered(Instant at, const Letter& letter) override;

 private:
  /// The latest iteration of a group.
  struct Group {
    Session session;
    Iteration iteration;
    std::int64_t samples = 0;                        // of the lead and the shares so far
    std::int64_t end = 0;                            // of the last share
    std::map<Address, std::set<BlockId>> delivered;  // gradients, by follower with a share
  };
  bool is_lead(Address actor) const;
  /// The first position of the group's iteration.
  std::int64_t begin_of(Address lead, const Group& group);
  void shared(Address lead, Address follower, Session session, const msg::GroupShare& share);
  void pushed(Address lead, Session session, const msg::Push& push) const;

  std::shared_ptr<const Job> job_;
  std::map<Address, Group> groups_;  // by lead
  /// By lead: the first position of each leased iteration, without old ones.
  std::map<Address, std::map<Iteration, std::int64_t>> leases_;
  static constexpr std::int64_t kKeptLeases = 8;
};

}  // namespace leeway::sim
