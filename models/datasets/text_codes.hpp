#pragma once
// TextCodes: numbers the different texts of a column.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace leeway {

class TextCodes {
 public:
  TextCodes() = default;
  /// Numbered as given, without repetitions.
  explicit TextCodes(const std::vector<std::string>& texts);

  std::size_t size() const { return texts_.size(); }
  /// The code of a text, or -1.
  std::int64_t find(std::string_view text) const;
  /// The same, after adding it if it is new.
  std::int64_t add(std::string_view text);
  std::vector<std::string> first(std::size_t most) const;
  bool are_mostly_numbers() const;

  struct Sorted {
    std::vector<std::string> texts;  // by number if all are numbers, else by their bytes
    std::vector<double> code_of;     // by previous code
  };
  Sorted sorted() const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> code_of_;
};

}  // namespace leeway
