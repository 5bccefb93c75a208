#include "cluster/node_checkpoints.hpp"

#include <algorithm>

#include "checkpoint/store.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

using Access = node::Answer::Checkpoints;
using checkpoint::Store;

bool has_shard(const node::Ask& ask) {
  return std::find(ask.shards.begin(), ask.shards.end(), ask.self) != ask.shards.end();
}

Access access_of(const node::Ask& ask, Files& disk) {
  const auto& checkpoints = ask.checkpoints;
  if (checkpoints.folder.empty() || !has_shard(ask)) return Access::none;
  const auto owner = Store(disk, checkpoints.folder).owner();
  if (owner && !owner->writer.empty() && owner->writer == checkpoints.writer) return Access::shared;
  return checkpoints.copies ? Access::copied : Access::sent;
}

}  // namespace

Expected<Access> check_checkpoints(const node::Ask& ask, Files& disk) {
  const Access access = access_of(ask, disk);
  if (access != Access::copied) return access;
  const auto& [folder, run, writer, copies] = ask.checkpoints;
  const Store store(disk, folder);
  const auto numbers = store.numbers();
  if (!numbers) return numbers.error();
  if (const auto owner = store.owner(); !numbers->empty() && (!owner || owner->run != run))
    return Error{concat(folder, ": holds checkpoints of another run; give another folder with "
                        "--checkpoint-dir DIR")};
  if (const Status claimed = store.claim(run); !claimed)
    return Error{concat("cannot keep copies of checkpoints: ", claimed.error().text,
                        "; give another folder with --checkpoint-dir DIR")};
  return access;
}

FileRights NodeCheckpoints::program_rights() const {
  return {.write = access == Access::copied ? ask.checkpoints.folder : "", .read = ""};
}

Status NodeCheckpoints::open(const std::shared_ptr<Files>& program, const Model& model,
                             JobOptions& options) const {
  const auto& [folder, run, writer, copies] = ask.checkpoints;
  options.run = run;
  if (access != Access::none) {
    const Store store(access == Access::shared ? disk : program, folder, writer);
    options.checkpoints = std::make_shared<const Store>(
        access == Access::copied ? store.with_copies({disk}) : store);
  }
  const auto& resumed = ask.resumed;
  if (resumed.folder.empty()) return {};
  auto manifest = checkpoint::manifest_from_json(resumed.manifest, "the program's checkpoint");
  if (!manifest) return manifest.error();
  if (!has_shard(ask)) {
    options.resumed = std::make_shared<checkpoint::Checkpoint>(
        checkpoint::Checkpoint{resumed.folder, std::move(*manifest), {}, {}});
    return {};
  }
  const Store here(disk, resumed.folder);
  auto loaded = (here.has_files(*manifest) ? here : Store(program, resumed.folder))
                    .load(resumed.number, model);
  if (!loaded) return loaded.error();
  options.resumed = std::make_shared<checkpoint::Checkpoint>(std::move(*loaded));
  return {};
}

}  // namespace leeway
