#pragma once
// CrashAtlas: one run of a plan with standby shards for each point at which a process can be lost.
//
// A process is lost after each message that it sends, also between two messages of one handler. It
// starts again some time later. A second process may be lost during the recovery. Every run must
// end well under all checkers, with every sample trained once.
#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/search/trial.hpp"

namespace leeway::sim {

/// The process `actor` is lost after its message number `sends`, from 1. For a second loss, only
/// messages after the first loss count.
struct KillPoint {
  Address actor;
  std::uint64_t sends = 0;
};

/// The kind of a lost process.
enum class Victim : std::uint8_t { worker, stage, primary, standby };
constexpr int kVictims = 4;
std::string_view name_of(Victim victim);

/// Two losses, by the kinds of the processes and of the last message of the second one.
struct TwoLosses {
  Victim first{}, second{};
  std::string last_message;
  auto operator<=>(const TwoLosses&) const = default;
};

struct AtlasRun {
  Trial trial;
  bool was_lost = false;  // the process has sent that many messages
  bool second_was_lost = false;
  TwoLosses lost;
  /// With a second loss to come: those that were possible since the first one.
  std::set<TwoLosses> possible;
  /// Virtual time from the loss to the next update of a lost replica's shard, of any shard after
  /// the loss of a worker; negative: the run had no update after the loss.
  Duration standstill{-1};
  std::vector<float> weights;  // at the end
};

class CrashAtlas {
 public:
  /// The plan, simulated with two replicas of each shard and for as many iterations as give about
  /// `messages` messages. Error: it is not valid, or has no worker to lose.
  static Expected<CrashAtlas> make(Plan plan, const MakeJob& make, std::uint64_t messages = 600);

  /// All points of the run without losses.
  const std::vector<KillPoint>& points() const { return points_; }
  std::uint64_t messages() const { return points_.size(); }
  const Plan& plan() const { return plan_; }
  /// Whether a loss of a replica must not change the weights at all.
  bool is_exact() const;

  /// Thread-safe.
  AtlasRun lose(const KillPoint& point) const { return run({point}, 0); }
  /// The losses that `seed` draws: one of points(), and another process during the recovery;
  /// `wanted` if that is given and becomes possible.
  AtlasRun lose_two(std::uint64_t seed, const std::optional<TwoLosses>& wanted = {}) const;

 private:
  CrashAtlas(Plan plan, std::shared_ptr<const Job> job)
      : plan_(std::move(plan)), job_(std::move(job)) {}
  AtlasRun run(const std::vector<KillPoint>& losses, std::uint64_t seed,
               const std::optional<TwoLosses>& wanted = {}) const;

  Plan plan_;
  std::shared_ptr<const Job> job_;
  std::vector<KillPoint> points_;
  std::vector<float> weights_;  // of the run without losses
  std::uint64_t samples_ = 0;   // trained in it
};

}  // namespace leeway::sim
