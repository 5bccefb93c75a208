#include "policies/straggler/text.hpp"

#include <charconv>
#include <string_view>
#include <vector>

#include "core/text.hpp"

namespace leeway {

namespace {

/// Goes through a text from left to right and remembers the first thing that was not there.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool skip(std::string_view word) {
    if (!rest().starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view sign) {
    if (!skip(sign)) missing(concat('\'', sign, '\''));
  }
  template <class Number>
  Number number(const char* what) {
    Number value{};
    const char* end = text_.data() + text_.size();
    const auto [stopped, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc())
      missing(what);
    else
      at_ = static_cast<std::size_t>(stopped - text_.data());
    return value;
  }
  /// `4x`.
  double factor() {
    const auto value = number<double>("factor");
    expect("x");
    return value;
  }
  std::uint32_t iterations() { return number<std::uint32_t>("number of iterations"); }
  /// Letters.
  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= 'a' && text_[at_] <= 'z') ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  /// Everything up to the last `end`.
  std::string up_to_last(char end) {
    const std::size_t length = rest().rfind(end);
    if (length == 0 || length == std::string_view::npos) {
      missing("name of a file");
      return {};
    }
    std::string found(rest().substr(0, length));
    at_ += length;
    return found;
  }
  void expect_end() {
    if (problem_.empty() && !rest().empty()) problem_ = concat("goes on after \"", so_far(), '"');
  }
  void missing(const std::string& what) {
    if (!problem_.empty()) return;
    problem_ = at_ == 0 ? concat("does not begin with a ", what)
                        : concat("has no ", what, " after \"", so_far(), '"');
  }

  std::string_view rest() const { return text_.substr(at_); }
  std::size_t position() const { return at_; }
  void go_back(std::size_t position) { at_ = position; }
  /// Empty while nothing was missing.
  const std::string& problem() const { return problem_; }

 private:
  std::string_view so_far() const { return text_.substr(0, at_); }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string problem_;
};

using Kind = plan::StragglerKind;

Kind read_factor(Reader& in) {
  const double factor = in.factor();
  if (!in.skip("@")) return plan::ConstantFactor{factor};
  plan::Bursts bursts{.factor = factor};
  bursts.share = in.number<double>("share") / 100;
  in.expect("%");
  if (in.skip("/")) bursts.length = in.iterations();
  return bursts;
}

Kind read_pareto(Reader& in) {
  plan::Pareto pareto{.alpha = in.number<double>("exponent")};
  if (in.skip(",")) pareto.cap = in.factor();
  return pareto;
}

/// `200ms` or `2s`, in seconds; nothing of it is read if there is no unit.
bool skip_time(Reader& in, double& seconds) {
  Reader ahead = in;
  const auto value = ahead.number<double>("time");
  const bool thousandths = ahead.skip("ms");
  if (!ahead.problem().empty() || (!thousandths && !ahead.skip("s"))) return false;
  seconds = thousandths ? value / 1e3 : value;
  in.go_back(ahead.position());
  return true;
}

Kind read_pauses(Reader& in) {
  plan::Pauses pauses;
  double seconds = 0;
  if (!skip_time(in, seconds)) in.missing("time, such as 200ms or 2s,");
  pauses.length_ms = seconds * 1e3;
  in.expect("/");
  if (skip_time(in, seconds))
    pauses.every = seconds;
  else
    pauses.every = in.iterations();
  return pauses;
}

Kind read_decay(Reader& in) {
  plan::Decay decay{.factor = in.factor()};
  in.expect("/");
  decay.iterations = in.iterations();
  return decay;
}

Kind read_sharing(Reader& in) {
  plan::Sharing sharing{.factor = in.factor()};
  in.expect(",");
  sharing.on = in.iterations();
  in.expect("/");
  sharing.off = in.iterations();
  return sharing;
}

Kind read_trace(Reader& in) {
  return plan::Trace{in.up_to_last(')')};
}

struct Form {
  const char* name;
  Kind (*read)(Reader& in);
  const char* how_to_write;
};
/// What has no name.
constexpr Form kPlain = {"", read_factor,
                         "3:4x, or 3:4x@20%/50 for bursts of 50 iterations that cover 20% of all"};
constexpr Form kNamed[] = {
    {"pareto", read_pareto, "3:pareto(1.5), or 3:pareto(1.5,20x) for factors up to 20"},
    {"pauses", read_pauses,
     "3:pauses(200ms/50) for 200 ms every 50 iterations, or 3:pauses(200ms/2s) for every 2 "
     "seconds"},
    {"decay", read_decay, "3:decay(8x/1000) for a rise to 8x over 1000 iterations"},
    {"sharing", read_sharing, "3:sharing(3x,100/300) for 100 iterations at 3x, then 300 without"},
    {"trace", read_trace, "3:trace(factors.txt) for a file with one factor a line"},
};

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& form : kNamed) out.emplace_back(form.name);
  return out;
}

const Form* find_form(const std::string& name) {
  if (name.empty()) return &kPlain;
  for (const auto& form : kNamed)
    if (name == form.name) return &form;
  return nullptr;
}

}  // namespace

Expected<plan::Straggler> parse_straggler(const std::string& text) {
  Reader in(text);
  plan::Straggler straggler;
  straggler.all = in.skip("all");
  if (!straggler.all) straggler.worker = in.number<std::uint32_t>("worker's number or \"all\"");
  in.expect(":");
  const std::string name = in.problem().empty() ? in.word() : "";
  const Form* form = find_form(name);
  if (!form)
    return Error{concat("--slow: \"", text, "\": there is no kind of straggler named \"", name, '"',
                        suggest(name, names()))};
  if (!name.empty()) in.expect("(");
  straggler.kind = form->read(in);
  if (!name.empty()) in.expect(")");
  in.expect_end();
  if (!in.problem().empty())
    return Error{concat("--slow: \"", text, "\" ", in.problem(), "; write ", form->how_to_write)};
  return straggler;
}

}  // namespace leeway
