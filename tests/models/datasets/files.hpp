#pragma once
// Temporary files and random bytes for tests of loaders.
#include <rapidcheck.h>
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.hpp"

namespace leeway::test {

using Bytes = std::vector<std::byte>;

inline Bytes to_bytes(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

/// A folder that the destructor removes.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "leeway-test-XXXXXX").string();
    LW_CHECK(mkdtemp(name.data()) != nullptr, name);
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, std::span<const std::byte> content) const {
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()),
               static_cast<std::streamsize>(content.size()));
    return path(name);
  }
  std::string write(const std::string& name, std::string_view text) const {
    return write(name, to_bytes(text));
  }

 private:
  std::filesystem::path path_;
};

inline Bytes read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return to_bytes(std::string(std::istreambuf_iterator<char>(file), {}));
}

/// `bytes` with one to eight random replacements, removals or duplications.
inline rc::Gen<Bytes> mutated(const Bytes& bytes) {
  return rc::gen::exec([bytes] {
    Bytes out = bytes;
    const int changes = *rc::gen::inRange(1, 9);
    for (int i = 0; i < changes && !out.empty(); ++i) {
      const auto at = out.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(out));
      switch (*rc::gen::inRange(0, 4)) {
        case 0:
          out.erase(at);
          break;
        case 1:
          out.insert(at, *at);
          break;
        default:
          *at = static_cast<std::byte>(*rc::gen::arbitrary<std::uint8_t>());
          break;
      }
    }
    return out;
  });
}

}  // namespace leeway::test
