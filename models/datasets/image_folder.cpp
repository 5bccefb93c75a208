#include "models/datasets/image_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "core/limits.hpp"
#include "core/memory.hpp"
#include "core/text.hpp"
#include "models/datasets/byte_images.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/image_file.hpp"
#include "models/datasets/test_share.hpp"
#include "models/datasets/utf8.hpp"

namespace leeway {

namespace {

namespace fs = std::filesystem;

struct LabelledFile {
  std::string path;
  std::int32_t label = 0;
};

/// The images of a folder, not yet decoded.
struct ImageList {
  std::vector<std::string> classes;  // names of the subfolders
  std::vector<LabelledFile> files;
};

/// The entries of a folder in the order of their names, without hidden ones.
Expected<std::vector<fs::directory_entry>> entries_of(const std::string& folder,
                                                      const std::string& remedy) {
  std::vector<fs::directory_entry> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with('.') || name == "Thumbs.db") continue;
    out.push_back(*it);
    if (out.size() > limits::kMaxFolderFiles)
      return Error{concat('"', folder, "\": has more than ", limits::kMaxFolderFiles,
                          " entries; give a smaller folder")};
  }
  if (error)
    return Error{concat('"', folder, "\" cannot be read: ", error.message(), "; ", remedy)};
  std::sort(out.begin(), out.end());
  return out;
}

Status add_class(const fs::path& folder, std::int32_t label, ImageList& list) {
  const auto files = entries_of(folder.string(), "make it readable");
  if (!files) return files.error();
  for (const auto& file : *files) {
    std::error_code ignored;
    if (file.is_directory(ignored))
      return Error{concat(file.path().string(),
                          ": is a folder in the folder of a class; move its images up")};
    list.files.push_back({file.path().string(), label});
  }
  if (!files->empty()) return {};
  return Error{concat(folder.string(), ": has no images; add some, or remove the folder")};
}

/// `known`: the classes of the training folder, or null for that folder.
Expected<ImageList> list_images(const std::string& folder, const char* key,
                                const std::vector<std::string>* known) {
  const auto entries = entries_of(
      folder,
      concat("give ", key, " an existing folder with a subfolder of images for each class"));
  if (!entries) return entries.error();
  ImageList list;
  if (known) list.classes = *known;
  for (const auto& entry : *entries) {
    std::error_code ignored;
    if (!entry.is_directory(ignored))
      return Error{concat(entry.path().string(),
                          ": is not in the folder of a class; put each image into a folder that "
                          "is named as its class")};
    std::string name = entry.path().filename().string();
    make_utf8(name);
    if (!known) list.classes.push_back(name);
    const auto found = std::find(list.classes.begin(), list.classes.end(), name);
    if (found == list.classes.end())
      return Error{concat(entry.path().string(), ": the training images have no class ",
                          excerpt(name), "; give test images of the same classes",
                          suggest(name, list.classes))};
    const auto label = static_cast<std::int32_t>(found - list.classes.begin());
    if (Status status = add_class(entry.path(), label, list); !status) return status.error();
  }
  if (!list.files.empty()) return list;
  return Error{concat('"', folder, "\": has no subfolders; give ", key,
                      " a folder with a subfolder of images for each class")};
}

/// Checks the sizes of all images by their headers. The result has colors if any image has.
Expected<ImageSize> common_size(const std::vector<LabelledFile>& files) {
  ImageSize common;
  for (const auto& file : files) {
    const auto bytes = read_file(file.path, "replace or remove it");
    if (!bytes) return bytes.error();
    const auto size = image_size(*bytes, file.path);
    if (!size) return size;
    if (common.width == 0) common = *size;
    common.color = common.color || size->color;
    if (size->width != common.width || size->height != common.height)
      return Error{concat(file.path, ": has ", size->width, " x ", size->height, " pixels, but ",
                          files[0].path, " has ", common.width, " x ", common.height,
                          "; resize the images to one size, for example with mogrify -resize ",
                          common.width, 'x', common.height, "!")};
  }
  return common;
}

Expected<ByteImages::Content> decode_all(const std::vector<LabelledFile>& files,
                                         const std::vector<std::size_t>& chosen, ImageSize size,
                                         int classes) {
  ByteImages::Content content{{size.color ? 3 : 1, size.height, size.width}, {}, {}, classes};
  content.pixels.reserve(chosen.size() * static_cast<std::size_t>(content.shape.count()));
  for (const std::size_t i : chosen) {
    const auto bytes = read_file(files[i].path, "replace or remove it");
    if (!bytes) return bytes.error();
    const auto pixels = decode_image(*bytes, files[i].path, size.color);
    if (!pixels) return pixels.error();
    if (std::ssize(*pixels) != content.shape.count())
      return Error{concat(files[i].path, ": has changed while it was read; start again")};
    content.pixels.insert(content.pixels.end(), pixels->begin(), pixels->end());
    content.labels.push_back(files[i].label);
  }
  return content;
}

std::vector<std::size_t> numbers_of(std::size_t begin, std::size_t end) {
  std::vector<std::size_t> out(end - begin);
  std::iota(out.begin(), out.end(), begin);
  return out;
}

/// The folder's own train and test folders, if it has exactly these two.
plan::ImageFolder with_test(const plan::ImageFolder& source) {
  if (!source.test.empty()) return source;
  const auto entries = entries_of(source.train, "");
  if (!entries || entries->size() != 2) return source;
  const bool both =
      (*entries)[0].path().filename() == "test" && (*entries)[1].path().filename() == "train";
  if (!both) return source;
  return {(*entries)[1].path().string(), (*entries)[0].path().string(), source.test_share};
}

}  // namespace

Expected<TrainTest> load_image_folder(const plan::ImageFolder& given, std::uint64_t seed) {
  const plan::ImageFolder source = with_test(given);
  auto list = list_images(source.train, "data.images.train", nullptr);
  if (!list) return list.error();
  const std::size_t train_count = list->files.size();
  TestShare rows;
  if (source.test.empty()) {
    auto share = draw_test_share(std::ssize(list->files), source.test_share, seed, "data.images");
    if (!share) return share.error();
    rows = std::move(*share);
  } else {
    const auto test = list_images(source.test, "data.images.test", &list->classes);
    if (!test) return test.error();
    list->files.insert(list->files.end(), test->files.begin(), test->files.end());
    rows = {numbers_of(0, train_count), numbers_of(train_count, list->files.size())};
  }
  const auto size = common_size(list->files);
  if (!size) return size.error();
  const auto bytes = list->files.size() * static_cast<std::uint64_t>(size->width * size->height) *
                     (size->color ? 3 : 1);
  if (Status fits = check_memory(source.train, concat("its ", list->files.size(), " images"), bytes,
                                 "give fewer or smaller images, or a machine with more memory");
      !fits)
    return fits.error();
  const auto classes = static_cast<int>(list->classes.size());
  auto train = decode_all(list->files, rows.train, *size, classes);
  if (!train) return train.error();
  auto test = decode_all(list->files, rows.test, *size, classes);
  if (!test) return test.error();
  Preprocessing how;
  how.classes = std::move(list->classes);
  how.split = {source.test, source.test.empty() ? source.test_share : 0,
               source.test.empty() ? seed : 0};
  return make_byte_images(std::move(*train), std::move(*test), std::move(how));
}

}  // namespace leeway
