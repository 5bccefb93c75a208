#include "policies/straggler/text.hpp"

#include <vector>

#include "core/text.hpp"
#include "core/text_reader.hpp"

namespace leeway {

namespace {

using Kind = plan::StragglerKind;

/// Before the start of a straggler, after any kind.
constexpr std::string_view kFrom = "@from=";

Kind read_factor(TextReader& in) {
  const double factor = in.factor();
  if (in.rest().starts_with(kFrom) || !in.skip("@")) return plan::ConstantFactor{factor};
  plan::Bursts bursts{.factor = factor};
  bursts.share = in.number<double>("share") / 100;
  in.expect("%");
  if (in.skip("/")) bursts.length = in.iterations();
  return bursts;
}

Kind read_pareto(TextReader& in) {
  plan::Pareto pareto{.alpha = in.number<double>("exponent")};
  if (in.skip(",")) pareto.cap = in.factor();
  return pareto;
}

Kind read_pauses(TextReader& in) {
  plan::Pauses pauses;
  double seconds = 0;
  if (!in.skip_time(seconds)) in.missing("time, such as 200ms or 2s,");
  pauses.length_ms = seconds * 1e3;
  in.expect("/");
  if (in.skip_time(seconds))
    pauses.every = seconds;
  else
    pauses.every = in.iterations();
  return pauses;
}

Kind read_decay(TextReader& in) {
  plan::Decay decay{.factor = in.factor()};
  in.expect("/");
  decay.iterations = in.iterations();
  return decay;
}

Kind read_sharing(TextReader& in) {
  plan::Sharing sharing{.factor = in.factor()};
  in.expect(",");
  sharing.on = in.iterations();
  in.expect("/");
  sharing.off = in.iterations();
  if (in.skip(",")) sharing.phase = in.iterations();
  return sharing;
}

Kind read_repeated(TextReader& in) {
  plan::Repeated repeated;
  do {
    repeated.factors.push_back(in.number<double>("factor"));
    in.skip("x");
  } while (in.problem().empty() && in.skip(","));
  return repeated;
}

Kind read_delay(TextReader& in) {
  return plan::FixedDelay{in.time() * 1e3};
}

Kind read_custom(TextReader& in) {
  return plan::CustomStraggler{in.up_to_last(')')};
}

Kind read_trace_file(TextReader& in) {
  return plan::Trace{in.up_to_last(')')};
}

struct Form {
  const char* name;
  Kind (*read)(TextReader& in);
  const char* how_to_write;
};
/// The form without a name.
constexpr Form kPlain = {"", read_factor,
                         "3:4x, or 3:4x@20%/50 for bursts of 50 iterations that cover 20% of all"};
constexpr Form kNamed[] = {
    {"pareto", read_pareto, "3:pareto(1.5), or 3:pareto(1.5,20x) for factors up to 20"},
    {"pauses", read_pauses,
     "3:pauses(200ms/50) for 200 ms every 50 iterations, or 3:pauses(200ms/2s) for every 2 "
     "seconds"},
    {"decay", read_decay, "3:decay(8x/1000) for a rise to 8x over 1000 iterations"},
    {"sharing", read_sharing, "3:sharing(3x,100/300) for 100 iterations at 3x, then 300 without"},
    {"repeated", read_repeated, "3:repeated(4,4,1,1) for these factors, again and again"},
    {"delay", read_delay, "3:delay(5ms) for 5 ms more in each iteration"},
    {"custom", read_custom, "3:custom(name) for a function of the program"},
    {"trace", read_trace_file, "3:trace(factors.txt) for a file with one factor per line"},
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

/// "3", "2+3" or "all".
void read_workers(TextReader& in, plan::Straggler& straggler) {
  straggler.all = in.skip("all");
  if (straggler.all) return;
  const auto worker = in.number<std::uint32_t>("worker's number or \"all\"");
  straggler.worker = worker;
  while (in.problem().empty() && in.skip("+")) {
    if (straggler.together.empty()) straggler.together = {worker};
    straggler.worker = 0;
    straggler.together.push_back(in.number<std::uint32_t>("worker's number"));
  }
}

/// "50%" of the run, or an iteration of the worker.
plan::StragglerStart read_start(TextReader& in) {
  TextReader ahead = in;
  const auto share = ahead.number<double>("start");
  if (ahead.problem().empty() && ahead.skip("%")) {
    in = ahead;
    return share / 100;
  }
  return std::int64_t{in.iterations()};
}

}  // namespace

Expected<plan::Straggler> parse_straggler(const std::string& text) {
  TextReader in(text);
  plan::Straggler straggler;
  read_workers(in, straggler);
  in.expect(":");
  const std::string name = in.problem().empty() ? in.word() : "";
  const Form* form = find_form(name);
  if (!form)
    return Error{concat("--slow: \"", text, "\": there is no kind of straggler named \"", name, '"',
                        suggest(name, names()))};
  if (!name.empty()) in.expect("(");
  straggler.kind = form->read(in);
  if (!name.empty()) in.expect(")");
  if (in.skip(kFrom)) straggler.from = read_start(in);
  in.expect_end();
  if (!in.problem().empty())
    return Error{concat("--slow: \"", text, "\" ", in.problem(), "; write ", form->how_to_write)};
  return straggler;
}

}  // namespace leeway
