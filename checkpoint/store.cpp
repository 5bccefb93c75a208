#include "checkpoint/store.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "checkpoint/digest.hpp"
#include "checkpoint/tensors.hpp"
#include "core/copied_files.hpp"
#include "core/mutant.hpp"
#include "core/number.hpp"
#include "core/text.hpp"

namespace leeway::checkpoint {
namespace {

constexpr const char* kPlanFile = "plan.json";
constexpr const char* kRunFile = "run";

std::optional<std::uint64_t> number_of(const std::string& folder) {
  const auto number = parse_number<std::uint64_t>(folder);
  return number && folder == folder_name(*number) ? number : std::nullopt;
}

std::vector<std::uint64_t> numbers_in(const std::vector<std::string>& names) {
  std::vector<std::uint64_t> found;
  for (const std::string& name : names)
    if (const auto number = number_of(name)) found.push_back(*number);
  std::sort(found.begin(), found.end());
  return found;
}

/// Calls `work` with each index below `count`, on several threads. Returns the error with the
/// lowest index; an exception is one.
template <class Work>
Status for_each_in_parallel(std::size_t count, Work work) {
  std::vector<Status> results(count);
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t index = next++; index < count; index = next++) {
      try {
        results[index] = work(index);
      } catch (const std::exception& error) {
        results[index] = Error{error.what()};
      }
    }
  };
  std::vector<std::thread> threads;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  threads.reserve(cores);
  try {
    for (std::size_t i = 1; i < std::min(count, cores); ++i) threads.emplace_back(run);
  } catch (const std::system_error&) {
    // Fewer threads do the same work.
  }
  run();
  for (auto& thread : threads) thread.join();
  for (Status& result : results)
    if (!result) return result;
  return {};
}

/// Writes a file, and adds it to the list.
Status write_listed(Files& files, const std::string& folder, const std::string& name,
                    std::span<const std::span<const std::byte>> pieces,
                    std::vector<msg::StoredFile>& list) {
  Digest digest;
  std::uint64_t size = 0;
  for (const auto piece : pieces) {
    digest.add(piece);
    size += piece.size();
  }
  if (Status status = write_durably(files, folder + "/" + name, pieces); !status) return status;
  list.push_back({name, size, digest.text()});
  return {};
}

/// The run, the writer, and a digest of both.
std::string claim_text(const std::string& run, const std::string& writer) {
  const std::string lines = concat(run, '\n', writer);
  return concat(lines, '\n', digest_of(std::as_bytes(std::span(lines))));
}

/// None if the claim is damaged.
std::optional<Owner> owner_in(std::string_view text) {
  const std::size_t first = text.find('\n');
  const std::size_t second = first == text.npos ? text.npos : text.find('\n', first + 1);
  if (second == text.npos) return std::nullopt;
  Owner owner{std::string(text.substr(0, first)),
              std::string(text.substr(first + 1, second - first - 1))};
  if (text != claim_text(owner.run, owner.writer)) return std::nullopt;
  return owner;
}

}  // namespace

std::string folder_name(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%06llu", static_cast<unsigned long long>(number));
  return text;
}

std::string Checkpoint::path() const {
  return folder + "/" + folder_name(manifest.number);
}

Store Store::with_copies(std::vector<std::shared_ptr<Files>> places) const {
  places.insert(places.begin(), files_);
  return {std::make_shared<CopiedFiles>(std::move(places)), folder_, writer_};
}

Expected<std::vector<msg::StoredFile>> Store::write_tensors(
    std::uint64_t number, ShardId shard, const Model& model,
    std::span<const StoredBlock> blocks) const {
  if (const auto mine = is_claimed(); !mine) return mine.error();
  if (Status made = files_->make_folder(path(number)); !made) return made.error();
  std::vector<msg::StoredFile> list;
  const auto write = [&](const std::string& name, std::vector<TensorView> tensors) -> Status {
    if (tensors.empty()) return {};
    const auto file = lay_out_safetensors(std::move(tensors), {{"format", "pt"}});
    if (!file) return file.error();
    return write_listed(*files_, path(number), concat(name, '-', shard, ".safetensors"),
                        file->pieces, list);
  };
  Status status = write(kWeights, weights_of(model, blocks));
  if (status) status = write(kOptimizer, slots_of(model, blocks));
  if (status) return list;
  for (const auto& file : list) (void)files_->remove(path(number) + "/" + file.name);
  return status.error();
}

void Store::remove_incomplete(std::uint64_t end) const {
  const auto all = folders_in_all_places();
  if (!all) return;
  for (const std::uint64_t number : *all)
    if (number < end && has_manifest(number) == false) (void)remove_remains(number);
}

void Store::remove_unlisted(const Manifest& manifest) const {
  const auto names = files_->list(path(manifest.number));
  if (!names) return;
  for (const std::string& name : *names)
    if (std::none_of(manifest.files.begin(), manifest.files.end(),
                     [&](const auto& file) { return file.name == name; }))
      (void)files_->remove(path(manifest.number) + "/" + name);
}

Status Store::claim(const std::string& run) const {
  if (Status made = files_->make_folder(folder_); !made) return made;
  return write_durably(*files_, folder_ + "/" + kRunFile, claim_text(run, writer_));
}

Status Store::put_mark() const {
  if (Status made = files_->make_folder(folder_); !made) return made;
  return write_durably(*files_, mark(), "");
}

void Store::remove_mark() const {
  (void)files_->remove(mark());
}

bool Store::has_mark() const {
  return !writer_.empty() && files_->read(mark()).has_value();
}

Expected<Owner> Store::owner() const {
  const auto content = files_->read(folder_ + "/" + kRunFile);
  if (!content) return content.error();
  auto owner = owner_in((*content)->text());
  if (!owner)
    return Error{concat(folder_, "/", kRunFile, ": is damaged; the next checkpoint replaces it")};
  return *owner;
}

Expected<bool> Store::is_claimed() const {
  if (writer_.empty()) return true;
  const std::string path = folder_ + "/" + kRunFile;
  const auto content = files_->read(path);
  if (!content && is_there(*files_, path) == true) return content.error();
  const auto owner = content ? owner_in((*content)->text()) : std::nullopt;
  if (!owner) return false;  // there is none, or it is damaged
  if (owner->writer == writer_) return true;
  return Error{concat(folder_, ": another process writes checkpoints of the run ", owner->run,
                      " into this folder; end one of the two")};
}

Status Store::commit(Manifest& manifest, const Plan& plan, std::uint32_t keep) const {
  const std::uint64_t number = manifest.number;
  const auto mine = is_claimed();
  if (!mine) return mine.error();
  if (!*mine)
    if (Status claimed = claim(manifest.run); !claimed) return claimed;
  // Each crash may have left one more than `keep`.
  remove_old(number - 1, planted(Mutant::old_removed_first) ? keep - 1 : keep);
  if (Status status = complete(manifest, plan); !status) {
    (void)remove(number);
    return status;
  }
  remove_old(number, keep);
  remove_incomplete(number);
  return {};
}

void Store::remove_old(std::uint64_t number, std::uint32_t keep) const {
  const auto found = numbers();
  if (!found) return;
  const auto end = std::upper_bound(found->begin(), found->end(), number);
  const auto count = std::min(end - found->begin(), static_cast<std::ptrdiff_t>(keep));
  for (auto old = found->begin(); old != end - count; ++old) (void)remove(*old);
}

Status Store::complete(Manifest& manifest, const Plan& plan) const {
  const std::string folder = path(manifest.number);
  const std::string text = to_json(plan);
  const auto plan_bytes = std::as_bytes(std::span(text));
  if (Status made = files_->make_folder(folder); !made) return made;
  remove_unlisted(manifest);
  if (planted(Mutant::manifest_before_files)) {
    Manifest early = manifest;
    early.files.push_back({kPlanFile, text.size(), digest_of(plan_bytes)});
    (void)write_durably(*files_, folder + "/" + kManifestFile, to_json(early));
  }
  if (Status status = write_listed(*files_, folder, kPlanFile, {&plan_bytes, 1}, manifest.files);
      !status)
    return status;
  if (Status status = write_durably(*files_, folder + "/" + kManifestFile, to_json(manifest));
      !status)
    return status;
  if (Status status = files_->flush_folder(folder_); !status) return status;
  return files_->flush_folder(folder_of(folder_));
}

Status Store::remove(std::uint64_t number) const {
  if (const auto mine = is_claimed(); !mine) return mine.error();
  const std::string folder = path(number);
  if (has_manifest(number) == true) {
    if (Status status = files_->remove(folder + "/" + kManifestFile); !status) return status;
    if (Status status = files_->flush_folder(folder); !status) return status;
  }
  return remove_remains(number);
}

Status Store::remove_remains(std::uint64_t number) const {
  // Another place than the first may have the manifest.
  if (Status status = files_->remove(path(number) + "/" + kManifestFile); !status) return status;
  return files_->remove(path(number));
}

std::optional<bool> Store::has_manifest(std::uint64_t number) const {
  const auto names = files_->list(path(number));
  if (!names) return is_there(*files_, path(number)) == false ? std::optional(false) : std::nullopt;
  return std::binary_search(names->begin(), names->end(), std::string(kManifestFile));
}

Expected<std::vector<std::uint64_t>> Store::folders() const {
  auto names = files_->list(folder_);
  if (!names) {
    if (is_there(*files_, folder_) != true) return std::vector<std::uint64_t>();
    names = files_->list(folder_);  // another process may have made the folder meanwhile
    if (!names) return names.error();
  }
  return numbers_in(*names);
}

Expected<std::vector<std::uint64_t>> Store::folders_in_all_places() const {
  const auto names = files_->list_all_places(folder_);
  if (!names) return names.error();
  return numbers_in(*names);
}

Expected<std::vector<std::uint64_t>> Store::numbers() const {
  auto found = folders();
  if (found)
    std::erase_if(*found, [&](std::uint64_t number) { return has_manifest(number) != true; });
  return found;
}

Expected<std::uint64_t> Store::next_number() const {
  const auto all = folders();
  if (!all) return all.error();
  return all->empty() ? 1 : all->back() + 1;
}

Expected<Manifest> Store::manifest(std::uint64_t number) const {
  const std::string file = path(number) + "/" + kManifestFile;
  const auto content = files_->read(file);
  if (!content) return content.error();
  auto manifest = manifest_from_json(std::string((*content)->text()), file);
  if (manifest && manifest->number != number)
    return Error{concat(file, ": is of checkpoint ", folder_name(manifest->number),
                        "; restore the folder's own manifest")};
  if (const auto run = owner(); manifest && run && run->run != manifest->run)
    return Error{concat(file, ": is of another run than the folder ", folder_,
                        "; move this checkpoint to a folder of its own")};
  return manifest;
}

Expected<std::shared_ptr<const Files::Content>> Store::open(std::uint64_t number,
                                                            const msg::StoredFile& file) const {
  const std::string name = path(number) + "/" + file.name;
  if (file.name.find('/') != std::string::npos)
    return Error{concat(name, ": is outside of the checkpoint; the manifest is damaged")};
  auto content = files_->read(name);
  if (!content) return content.error();
  const std::size_t size = (*content)->bytes().size();
  if (size != file.bytes)
    return Error{concat(name, ": has ", size, " bytes, the manifest states ", file.bytes,
                        "; resume from another checkpoint")};
  return content;
}

Status Store::check_digest(std::uint64_t number, const msg::StoredFile& file,
                           std::span<const std::byte> bytes) const {
  const std::string digest = digest_of(bytes);
  if (digest == file.digest) return {};
  return Error{concat(path(number), '/', file.name, ": has digest ", digest,
                      ", the manifest states ", file.digest,
                      "; the file is damaged or of another checkpoint")};
}

Expected<std::shared_ptr<const Files::Content>> Store::read(std::uint64_t number,
                                                            const msg::StoredFile& file) const {
  auto content = open(number, file);
  if (!content) return content;
  if (Status same = check_digest(number, file, (*content)->bytes()); !same) return same.error();
  return content;
}

Expected<Plan> Store::plan(std::uint64_t number) const {
  const auto manifest = this->manifest(number);
  if (!manifest) return manifest.error();
  return plan_of(*manifest);
}

Expected<Plan> Store::plan_of(const Manifest& manifest) const {
  for (const msg::StoredFile& file : manifest.files) {
    if (file.name != kPlanFile) continue;
    const auto content = read(manifest.number, file);
    if (!content) return content.error();
    return plan_from_json(std::string((*content)->text()), path(manifest.number) + "/" + kPlanFile);
  }
  return Error{concat(path(manifest.number), ": its manifest names no ", kPlanFile)};
}

Status Store::verify(std::uint64_t number) const {
  const auto manifest = this->manifest(number);
  if (!manifest) return manifest.error();
  for (const msg::StoredFile& file : manifest->files)
    if (const auto content = read(number, file); !content) return content.error();
  return {};
}

Expected<Checkpoint> Store::load(std::uint64_t number, const Model& model) const {
  auto manifest = this->manifest(number);
  if (!manifest) return manifest.error();
  auto plan = plan_of(*manifest);
  if (!plan) return plan.error();
  Checkpoint loaded{folder_, std::move(*manifest), std::move(*plan), {}};
  // Opens all files first, so that the disk reads ahead.
  std::vector<std::pair<const msg::StoredFile*, std::shared_ptr<const Files::Content>>> files;
  for (const msg::StoredFile& file : loaded.manifest.files) {
    if (!file.name.ends_with(".safetensors")) continue;
    auto content = open(number, file);
    if (!content) return content.error();
    files.emplace_back(&file, std::move(*content));
  }
  ParameterReader reader(model);
  Status status = for_each_in_parallel(files.size(), [&](std::size_t index) {
    const auto& [file, content] = files[index];
    Status intact = check_digest(number, *file, content->bytes());
    return intact ? reader.add(content, path(number) + "/" + file->name) : intact;
  });
  if (!status) return status.error();
  auto parameters = reader.take(loaded.manifest, path(number));
  if (!parameters) return parameters.error();
  loaded.parameters = std::move(*parameters);
  return loaded;
}

}  // namespace leeway::checkpoint
