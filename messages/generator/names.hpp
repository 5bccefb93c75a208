#pragma once
// Spellings of one name: the schema's camelCase, C++'s snake_case, words for people.
#include <string>
#include <string_view>

namespace leeway::generator {

/// microBatches -> micro_batches, or with another separator.
std::string snake_case(std::string_view camel, char separator = '_');
/// microBatches -> MicroBatches, as in accessors of Cap'n Proto.
std::string pascal_case(std::string_view camel);
/// maxPool2d -> MAX_POOL2D, as in enumerators of Cap'n Proto.
std::string upper_case(std::string_view camel);

}  // namespace leeway::generator
