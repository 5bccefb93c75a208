#pragma once
// Vocabulary: the characters of a text, numbered from 0 in the order of their code points.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

class Vocabulary {
 public:
  /// The vocabulary of the characters in `text`, which is UTF-8 and not empty. `name` is for
  /// errors, which name the invalid byte.
  static Expected<std::shared_ptr<const Vocabulary>> of(std::string_view text,
                                                        const std::string& name);
  /// Parses the result of json(). `name` is for errors.
  static Expected<std::shared_ptr<const Vocabulary>> parse(const std::string& json,
                                                           const std::string& name);

  int size() const { return static_cast<int>(characters_.size()); }
  /// Character `number` as UTF-8. Requires 0 <= number < size().
  const std::string& character(int number) const {
    return characters_[static_cast<std::size_t>(number)];
  }
  /// The number of each character of `text`. Errors: text that is not UTF-8, and the first
  /// character that is not in the vocabulary.
  Expected<std::vector<std::int32_t>> numbers(std::string_view text, const std::string& name) const;
  /// {"characters": ["\n", " ", "!", ...]}
  std::string json() const;

 private:
  explicit Vocabulary(std::vector<char32_t> points);

  std::vector<std::string> characters_;
  std::map<char32_t, std::int32_t> number_of_;
};

}  // namespace leeway
