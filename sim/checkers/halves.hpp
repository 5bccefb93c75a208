#pragma once
// Halves: of blocks that several stages of a pipeline own, which pushes are applied as one update.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "actors/job.hpp"

namespace leeway::sim {

/// A book of one shard. Where the pipeline is emptied for each update, the halves of an iteration
/// are one update; each is one of its own where it comes when an owner is out, or where one goes
/// while it waits. Under bsp, and where the pipeline is never emptied, no halves are kept here.
class Halves {
 public:
  Halves(std::shared_ptr<const Job> job, ShardId shard) : job_(std::move(job)), shard_(shard) {}

  struct Name {
    WorkerId worker;
    Incarnation incarnation;
    Iteration iteration;
    std::uint32_t group = 0;
  };

  /// A push comes to the shard, which takes it unless something is said of it before anything else
  /// comes.
  void comes(const Name& half);
  void something_comes() { latest_.reset(); }
  void not_taken();
  void admitted(WorkerId worker) { here_.insert(worker); }
  /// Fenced or removed.
  void out(WorkerId worker);

  enum class Applied : std::uint8_t { with_others, begins_update, too_early };
  /// `empty`: it is no update.
  Applied applied(const Name& half, bool empty);

 private:
  /// What makes one update.
  struct Update {
    std::map<WorkerId, Incarnation> halves;
    bool closed = false;  // no other half is to come
    bool begun = false;
    std::size_t applied = 0;
  };
  using Key = std::tuple<WorkerId, std::uint32_t, Iteration>;  // lead, group
  bool kept(std::uint32_t group) const;
  Key key_of(const Name& half) const;
  bool complete(const Key& key, const Update& update) const;

  std::shared_ptr<const Job> job_;
  ShardId shard_;
  std::set<WorkerId> here_;
  /// Several of one key are of different lives.
  std::map<Key, std::vector<Update>> updates_;
  std::optional<Name> latest_;
};

}  // namespace leeway::sim
