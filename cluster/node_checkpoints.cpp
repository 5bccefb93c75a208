#include "cluster/node_checkpoints.hpp"

#include "actors/cluster/agent.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

using Access = node::Answer::Checkpoints;
using checkpoint::Store;

/// Whether the node begins with a shard or a standby, and so with the weights.
bool has_shard(const node::Ask& ask) {
  return placement_of(ask).replicas_on(NodeIndex(ask.self)) > 0;
}

/// Whether it may have a shard, now or later, which then writes its files.
bool can_have_shard(const node::Ask& ask) {
  return has_shard(ask) || !ask.standbys.empty();
}

/// Of the nodes that see the same folder, the first one gets the manifests. Removes the marks of
/// earlier starts.
Expected<Access> enter_folder_of_copies(const Store& store, Files& disk) {
  const std::string prefix = "run-copies-";
  const std::string mark = prefix + store.writer();
  if (const auto names = disk.list(store.folder()))
    for (const std::string& name : *names)
      if (name.starts_with(prefix) && name != mark) (void)disk.remove(store.folder() + "/" + name);
  const std::string path = store.folder() + "/" + mark;
  const auto created = disk.create(path);
  if (created) return Access::copied;
  if (is_there(disk, path) == true) return Access::joint;
  return created.error();
}

}  // namespace

Status check_checkpoints(const node::Ask& ask, Files& disk, node::Answer& answer) {
  const auto& [folder, run, writer, copies] = ask.checkpoints;
  if (folder.empty() || !can_have_shard(ask)) return {};
  const Store store(disk, folder, writer);
  answer.checkpoints = store.has_mark() ? Access::shared : Access::sent;
  if (answer.checkpoints == Access::shared || !copies) return {};
  const auto numbers = store.numbers();
  if (!numbers) return numbers.error();
  if (const auto owner = store.owner(); !numbers->empty() && (!owner || owner->run != run))
    return Error{concat(folder,
                        ": holds checkpoints of another run; give another folder with "
                        "--checkpoint-dir DIR")};
  const auto next = store.next_number();
  if (!next) return next.error();
  answer.next_checkpoint = *next;
  const auto advice = [](const std::string& reason) {
    return Error{concat("cannot keep copies of checkpoints: ", reason,
                        "; give another folder with --checkpoint-dir DIR")};
  };
  if (const Status claimed = Store(disk, folder).claim(run); !claimed)
    return advice(claimed.error().text);
  const auto access = enter_folder_of_copies(store, disk);
  if (!access) return advice(access.error().text);
  answer.checkpoints = *access;
  return {};
}

FileRights NodeCheckpoints::program_rights() const {
  return {.write_folder = access_ == Access::copied ? ask_.checkpoints.folder : "",
          .read_folder = ""};
}

Status NodeCheckpoints::open(const std::shared_ptr<Files>& program, const Model& model,
                             JobOptions& options) const {
  const auto& [folder, run, writer, copies] = ask_.checkpoints;
  options.run = run;
  if (access_ != Access::none) {
    const Store store(access_ == Access::shared ? disk_ : program, folder, writer);
    const bool copied = access_ == Access::copied || access_ == Access::joint;
    options.checkpoints =
        std::make_shared<const Store>(copied ? store.with_copies({disk_}) : store);
  }
  const auto& resumed = ask_.resumed;
  if (resumed.folder.empty()) return {};
  if (!has_shard(ask_)) {
    auto manifest = checkpoint::manifest_from_json(resumed.manifest, "the program's checkpoint");
    if (!manifest) return manifest.error();
    options.resumed = std::make_shared<checkpoint::Checkpoint>(
        checkpoint::Checkpoint{resumed.folder, std::move(*manifest), {}, {}});
    return {};
  }
  auto loaded = load_here_or_there(program, model);
  if (!loaded) return loaded.error();
  options.resumed = std::make_shared<checkpoint::Checkpoint>(std::move(*loaded));
  return {};
}

Expected<checkpoint::Checkpoint> NodeCheckpoints::load_here_or_there(
    const std::shared_ptr<Files>& program, const Model& model) const {
  const auto& [folder, number, manifest] = ask_.resumed;
  const Store here(disk_, folder);
  const auto copy = here.manifest(number);
  if (copy && to_json(*copy) == manifest)
    if (auto loaded = here.load(number, model)) return loaded;
  return Store(program, folder).load(number, model);
}

}  // namespace leeway
