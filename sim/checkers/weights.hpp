#pragma once
// WeightsChecker: property 8, a gradient is computed on the weights pulled for it, and tensors in
// flight are not modified.
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/books.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// In a pipeline that is never flushed, several iterations share a pull, which carries the number
/// of the last one. A gradient may then belong to any pull of its iteration or a later one.
class WeightsChecker final : public Checker {
 public:
  explicit WeightsChecker(const std::shared_ptr<const Job>& job)
      : Checker("backward uses the weights that forward used (8)"),
        asynchronous_(job->stages->asynchronous()) {}
  void on_sent(Instant, const Letter& letter) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  struct Versions {
    std::uint32_t pull = 0;  // its number
    std::vector<std::pair<BlockId, Version>> of;
  };
  struct Pulled {
    std::map<Iteration, Versions> versions;  // of the newest pulls, from `from` on
    Iteration from;                          // the largest pushed iteration
    bool has(Iteration iteration, bool or_later, std::pair<BlockId, Version> of) const;
  };
  struct InFlight {
    Message message;  // kept, so that no other message gets its address
    std::uint64_t contents = 0;
    std::uint32_t times = 0;
  };
  void check_contents(const Letter& letter);
  void check_push(const Letter& letter, const msg::Push& push);

  bool asynchronous_;
  Books<std::map<Session, Pulled>> pulled_;
  /// By address of the header, which is unique among messages in flight. Never iterated over.
  std::unordered_map<const std::uint64_t*, InFlight> in_flight_;
};

}  // namespace leeway::sim
