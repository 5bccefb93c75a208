#include "messages/generator/names.hpp"

namespace leeway::generator {

std::string snake_case(std::string_view camel, char separator) {
  std::string out;
  for (const char c : camel) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !out.empty()) out += separator;
    out += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

std::string pascal_case(std::string_view camel) {
  std::string out(camel);
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z')
    out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

std::string upper_case(std::string_view camel) {
  std::string out = snake_case(camel);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

}  // namespace leeway::generator
