#include "policies/pipeline/table.hpp"

#include "core/check.hpp"
#include "core/text.hpp"

namespace leeway::pipeline {

char letter_of(OpKind kind) {
  switch (kind) {
    case OpKind::forward:
      return 'F';
    case OpKind::backward_input:
      return 'I';
    case OpKind::backward_weights:
      return 'W';
    case OpKind::backward:
      return 'B';
    case OpKind::update:
      return 'U';
  }
  LW_CHECK(false, static_cast<int>(kind));
  return '?';
}

std::string_view name_of(OpKind kind) {
  switch (kind) {
    case OpKind::forward:
      return "forward";
    case OpKind::backward_input:
      return "backward for inputs";
    case OpKind::backward_weights:
      return "backward for weights";
    case OpKind::backward:
      return "backward";
    case OpKind::update:
      return "update";
  }
  LW_CHECK(false, static_cast<int>(kind));
  return "?";
}

std::string text_of(const Op& op, int chunks) {
  std::string text = concat(letter_of(op.kind), op.micro_batch);
  if (chunks > 1) text += static_cast<char>('a' + op.chunk);
  return text;
}

}  // namespace leeway::pipeline
