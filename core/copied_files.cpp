#include "core/copied_files.hpp"

#include <algorithm>
#include <utility>

#include "core/check.hpp"

namespace leeway {

class CopiedFiles::CopiedWriter final : public Files::Writer {
 public:
  explicit CopiedWriter(std::vector<std::unique_ptr<Writer>> writers)
      : writers_(std::move(writers)) {}

  Status append(std::span<const std::byte> bytes) override {
    for (const auto& writer : writers_)
      if (Status status = writer->append(bytes); !status) return status;
    return {};
  }

  Status flush() override {
    for (const auto& writer : writers_)
      if (Status status = writer->flush(); !status) return status;
    return {};
  }

 private:
  std::vector<std::unique_ptr<Writer>> writers_;
};

CopiedFiles::CopiedFiles(std::vector<std::shared_ptr<Files>> places) : places_(std::move(places)) {
  LW_CHECK(!places_.empty(), "files have a place");
}

template <class Operation>
Status CopiedFiles::in_all(Operation operation) {
  for (const auto& place : places_)
    if (Status status = operation(*place); !status) return status;
  return {};
}

Expected<std::unique_ptr<Files::Writer>> CopiedFiles::create(const std::string& path) {
  std::vector<std::unique_ptr<Writer>> writers;
  const Status created = in_all([&](Files& place) -> Status {
    auto writer = place.create(path);
    if (!writer) return writer.error();
    writers.push_back(std::move(*writer));
    return {};
  });
  if (!created) return created.error();
  return std::unique_ptr<Writer>(std::make_unique<CopiedWriter>(std::move(writers)));
}

Status CopiedFiles::rename(const std::string& from, const std::string& to) {
  return in_all([&](Files& place) { return place.rename(from, to); });
}

Status CopiedFiles::make_folder(const std::string& path) {
  return in_all([&](Files& place) { return place.make_folder(path); });
}

Status CopiedFiles::flush_folder(const std::string& path) {
  return in_all([&](Files& place) {
    Status status = place.flush_folder(path);
    if (!status && &place != places_.front().get() && is_there(place, path) == false)
      return Status();
    return status;
  });
}

Status CopiedFiles::remove(const std::string& path) {
  Status first;
  for (const auto& place : places_)
    if (Status status = place->remove(path); !status && first) first = std::move(status);
  return first;
}

Expected<std::vector<std::string>> CopiedFiles::list(const std::string& folder) {
  return places_.front()->list(folder);
}

Expected<std::vector<std::string>> CopiedFiles::list_all_places(const std::string& folder) {
  auto names = places_.front()->list(folder);
  if (!names) return names;
  for (auto place = places_.begin() + 1; place != places_.end(); ++place)
    if (const auto more = (*place)->list(folder))
      names->insert(names->end(), more->begin(), more->end());
  std::sort(names->begin(), names->end());
  names->erase(std::unique(names->begin(), names->end()), names->end());
  return names;
}

Expected<std::shared_ptr<const Files::Content>> CopiedFiles::read(const std::string& path) {
  return places_.front()->read(path);
}

}  // namespace leeway
