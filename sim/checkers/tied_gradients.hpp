#pragma once
// TiedGradients: for tied blocks, the pushes that a shard applies as one update.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "actors/job.hpp"

namespace leeway::sim {

/// One shard's record. If a pipeline is emptied for each update, the tied gradients of an iteration
/// are one update. A gradient does not wait if it arrives while another owner is out, or if another
/// owner goes. Nothing is recorded under bsp, and for pipelines that are never emptied.
class TiedGradients {
 public:
  TiedGradients(std::shared_ptr<const Job> job, ShardId shard)
      : job_(std::move(job)), shard_(shard) {}

  struct Name {
    WorkerId worker;
    Session session;
    Iteration iteration;
    std::uint32_t shard_bucket = 0;
  };

  /// A push arrives. The shard accepts it unless not_accepted() follows before the next message.
  void arrives(const Name& gradient);
  void message_arrives() { latest_.reset(); }
  void not_accepted();
  void admitted(WorkerId worker) { here_.insert(worker); }
  /// The worker is fenced or removed.
  void out(WorkerId worker);

  enum class Applied : std::uint8_t { with_others, begins_update, too_early };
  /// `empty`: the push has no gradient, so it begins no update.
  Applied applied(const Name& gradient, bool empty);

 private:
  /// The gradients of one update.
  struct Update {
    std::map<WorkerId, Session> gradients;
    bool closed = false;  // no further gradient can join
    bool begun = false;
    std::size_t applied = 0;
  };
  using Key = std::tuple<WorkerId, std::uint32_t, Iteration>;  // lead, bucket
  bool is_recorded(std::uint32_t shard_bucket) const;
  Key key_of(const Name& gradient) const;
  bool is_complete(const Key& key, const Update& update) const;

  std::shared_ptr<const Job> job_;
  ShardId shard_;
  std::set<WorkerId> here_;
  /// Updates of one key belong to different sessions.
  std::map<Key, std::vector<Update>> updates_;
  std::optional<Name> latest_;
};

}  // namespace leeway::sim
