#include "models/datasets/text_codes.hpp"

#include <algorithm>
#include <numeric>

#include "models/datasets/csv_reader.hpp"

namespace leeway {

TextCodes::TextCodes(const std::vector<std::string>& texts) {
  for (const auto& text : texts) add(text);
}

std::int64_t TextCodes::find(std::string_view text) const {
  const auto found = code_of_.find(text);
  return found == code_of_.end() ? -1 : found->second;
}

std::int64_t TextCodes::add(std::string_view text) {
  if (const auto found = code_of_.find(text); found != code_of_.end()) return found->second;
  const auto code = std::ssize(texts_);
  code_of_.emplace(texts_.emplace_back(text), code);
  return code;
}

std::vector<std::string> TextCodes::first(std::size_t most) const {
  return {texts_.begin(), texts_.begin() + static_cast<std::ptrdiff_t>(std::min(most, size()))};
}

bool TextCodes::are_mostly_numbers() const {
  const auto numbers = std::count_if(texts_.begin(), texts_.end(), [](const auto& text) {
    return parse_number(text).has_value();
  });
  return 2 * static_cast<std::size_t>(numbers) > size();
}

TextCodes::Sorted TextCodes::sorted() const {
  struct Item {
    double number;
    std::size_t code;
  };
  bool numbers = true;
  std::vector<Item> items;
  for (const auto& text : texts_) {
    const auto number = parse_number(text);
    numbers = numbers && number;
    items.push_back({number ? *number : 0, items.size()});
  }
  std::sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
    if (numbers && a.number != b.number) return a.number < b.number;
    return texts_[a.code] < texts_[b.code];
  });
  Sorted out;
  out.code_of.resize(size());
  for (const Item& item : items) {
    out.code_of[item.code] = static_cast<double>(out.texts.size());
    out.texts.push_back(texts_[item.code]);
  }
  return out;
}

}  // namespace leeway
