#include "testing/verdict.hpp"

#include <ostream>

#include "core/text.hpp"

namespace leeway {

std::ostream& operator<<(std::ostream& out, const Verdict& verdict) {
  if (verdict.text_.empty()) return out << (verdict.holds_ ? "holds" : "does not hold");
  return out << verdict.text_;
}

std::ostream& operator<<(std::ostream& out, const Measured& measured) {
  if (!measured.failure_.empty()) return out << measured.failure_;
  return out << measured.value_ << " (" << measured.what_ << ')';
}

Verdict Measured::check(bool holds, const char* relation, double bound) const {
  if (!failure_.empty()) return {false, failure_};
  return {holds, concat(what_, " is ", value_, holds ? ", which is " : ", which is not ", relation,
                        ' ', bound)};
}

}  // namespace leeway
