// leeway checkpoints: lists, verifies and prunes the checkpoints of a run.
#include <iomanip>
#include <iostream>

#include "checkpoint/store.hpp"
#include "cli/commands.hpp"
#include "core/folder_lock.hpp"
#include "core/text.hpp"
#include "monitoring/format.hpp"
#include "runtime/checkpoints.hpp"

namespace leeway::cli {
namespace {

/// Prints one line per checkpoint, and the error below one that is damaged. Returns the number of
/// damaged ones.
int print(const checkpoint::Store& store, const std::vector<std::uint64_t>& numbers, bool verify) {
  int damaged = 0;
  std::cout << "  checkpoint  written               samples trained        size"
            << (verify ? "  files" : "") << '\n';
  for (const std::uint64_t number : numbers) {
    const auto manifest = store.manifest(number);
    const Status valid = !manifest ? Status(manifest.error())
                         : verify  ? store.verify(number)
                                   : Status();
    std::cout << "  " << std::setw(10) << checkpoint::folder_name(number);
    if (manifest)
      std::cout << "  " << std::setw(20) << manifest->written << std::setw(17)
                << grouped(checkpoint::samples_trained(*manifest)) << std::setw(12)
                << size_text(checkpoint::total_bytes(*manifest));
    if (verify && valid) std::cout << "  ok";
    std::cout << '\n';
    if (valid) continue;
    std::cout << "              damaged: " << valid.error().text << '\n';
    ++damaged;
  }
  return damaged;
}

int prune(const checkpoint::Store& store, const std::vector<std::uint64_t>& numbers,
          std::uint32_t keep) {
  // A run with the default interval has locked only its own folder.
  const std::string run = run_folder_of(store.folder());
  const auto lock = FolderLock::take(run.empty() ? store.folder() : run,
                                     "wait for it to end; it prunes by itself");
  if (!lock) return refuse(lock.error());
  // Damaged checkpoints do not count, and stay for inspection.
  std::uint32_t intact = 0;
  std::size_t removed = 0;
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    if (intact < keep) {
      intact += store.verify(*number) ? 1 : 0;
      continue;
    }
    if (const Status status = store.remove(*number); !status) return refuse(status.error());
    std::cout << "removed " << store.path(*number) << '\n';
    ++removed;
  }
  if (removed == 0)
    std::cout << "nothing to remove: " << store.folder() << " holds " << intact
              << (intact == 1 ? " intact checkpoint\n" : " intact checkpoints\n");
  return kExitOk;
}

}  // namespace

int checkpoints(const std::string& run, const CheckpointsOptions& options) {
  if (options.keep && (*options.keep < 1 || *options.keep > kMaxKept))
    return refuse({concat("--prune: ", *options.keep, " is not allowed; give 1 to ", kMaxKept)});
  const auto folder = checkpoints_of(run);
  if (!folder) return refuse(folder.error());
  const checkpoint::Store store(disk(), *folder);
  const auto numbers = store.numbers();
  if (!numbers) return refuse(numbers.error());
  if (numbers->empty()) {
    std::cerr
        << "leeway: " << run
        << ": holds no checkpoint; a run writes one every minute, or as --checkpoint-every says\n";
    return kExitRefused;
  }
  if (options.keep) return prune(store, *numbers, *options.keep);
  std::cout << *folder << '\n';
  return print(store, *numbers, options.verify) == 0 ? kExitOk : kExitFailed;
}

}  // namespace leeway::cli
