#pragma once
// TemporaryFolder: a folder for the files of one test.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

namespace leeway::blame {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "leeway-blame-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()));
    root_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(root_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return root_; }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ + '/' + name) << text;
    return root_ + '/' + name;
  }

 private:
  std::string root_;
};

}  // namespace leeway::blame
