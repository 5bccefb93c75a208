#include "runtime/flags/fault_text.hpp"

#include <cctype>
#include <vector>

#include "core/text_reader.hpp"

namespace leeway {

namespace {

using Kind = plan::FaultKind;

/// `worker2`, `shard0`, `scheduler`, or only a worker's number.
Address read_actor(TextReader& in) {
  std::string name = in.word();
  std::string digits;
  while (!in.rest().empty() && std::isdigit(static_cast<unsigned char>(in.rest().front()))) {
    digits += in.rest().front();
    in.skip(in.rest().substr(0, 1));
  }
  const auto actor = parse_address(name + digits);
  if (!actor) in.missing("worker's number, worker2, shard0 or scheduler");
  return actor ? *actor : Address{};
}

Address read_peer(TextReader& in) {
  const Address peer = read_actor(in);
  in.expect(",");
  return peer;
}

Kind read_crash(TextReader& in) {
  return plan::Crash{in.time()};
}
Kind read_freeze(TextReader& in) {
  return plan::Freeze{in.time()};
}
Kind read_slow(TextReader& in) {
  plan::Slow slow{.delay_ms = in.time() * 1e3};
  in.expect(",");
  slow.seconds = in.time();
  return slow;
}
Kind read_break(TextReader& in) {
  const Address peer = read_peer(in);
  return plan::Breaks{peer, in.time()};
}
Kind read_delay(TextReader& in) {
  plan::Delay delay{.peer = read_peer(in)};
  delay.delay_ms = in.time() * 1e3;
  in.expect(",");
  delay.seconds = in.time();
  return delay;
}
Kind read_silence(TextReader& in) {
  const Address peer = read_peer(in);
  return plan::Silence{peer, in.time()};
}
Kind read_partition(TextReader& in) {
  plan::Partition partition;
  if (in.skip_time(partition.seconds)) return partition;
  do {
    partition.with.push_back(read_actor(in));
  } while (in.skip("+"));
  in.expect(",");
  partition.seconds = in.time();
  return partition;
}
Kind read_slow_link(TextReader& in) {
  plan::SlowLink slow{.factor = in.factor()};
  in.expect(",");
  slow.seconds = in.time();
  return slow;
}
Kind read_stop_clock(TextReader& in) {
  return plan::ClockStops{in.time()};
}
Kind read_competes(TextReader& in) {
  return plan::Competes{in.time()};
}

struct FaultSyntax {
  const char* name;
  Kind (*read)(TextReader& in);  // reads the arguments in brackets; null: it has no arguments
  Kind plain;                    // without brackets
  bool needs_brackets;
  const char* example;
};
const FaultSyntax kSyntax[] = {
    {"throws", nullptr, plan::Throws{}, false, "2:throws@100"},
    {"killed", nullptr, plan::Killed{}, false, "2:killed@100"},
    {"crash", read_crash, plan::Crash{}, false,
     "2:crash@3s, or 2:crash(500ms)@3s to restart it after 500 ms"},
    {"joins", nullptr, plan::Joins{}, false, "2:joins@3s"},
    {"leaves", nullptr, plan::Leaves{}, false, "2:leaves@3s"},
    {"freeze", read_freeze, plan::Freeze{}, true, "2:freeze(500ms)@100"},
    {"slow", read_slow, plan::Slow{}, true, "scheduler:slow(5ms,2s)@1s"},
    {"break", read_break, plan::Breaks{}, true, "2:break(shard0,100ms)@1s"},
    {"delay", read_delay, plan::Delay{}, true, "2:delay(shard0,5ms,2s)@1s"},
    {"silence", read_silence, plan::Silence{}, true, "2:silence(shard0,2s)@1s"},
    {"partition", read_partition, plan::Partition{}, true,
     "2:partition(2s)@1s, or 2:partition(3+shard1,2s)@1s to keep worker 3 and shard 1 on its side"},
    {"slow-link", read_slow_link, plan::SlowLink{}, true, "2:slow-link(10x,2s)@1s"},
    {"stop-clock", read_stop_clock, plan::ClockStops{}, true, "2:stop-clock(2s)@1s"},
    {"competes", read_competes, plan::Competes{}, true, "node5:competes(2s)@1s"},
};

const FaultSyntax* find_syntax(const std::string& name) {
  for (const auto& syntax : kSyntax)
    if (name == syntax.name) return &syntax;
  return nullptr;
}

/// `100`, `100~50`, `3s` or `3s~500ms`.
void read_when(TextReader& in, plan::Fault& fault) {
  double seconds = 0;
  if (in.skip_time(seconds)) {
    fault.at = seconds;
    if (in.skip("~")) fault.spread = in.time();
  } else {
    fault.at = in.number<std::int64_t>("iteration or time");
    if (in.skip("~")) fault.spread = static_cast<double>(in.number<std::uint32_t>("number"));
  }
}

}  // namespace

Expected<plan::Fault> parse_fault(const std::string& text) {
  TextReader in(text);
  plan::Fault fault;
  fault.actor = read_actor(in);
  in.expect(":");
  const std::string name = in.problem().empty() ? in.word() : "";
  const FaultSyntax* syntax = find_syntax(name);
  if (!syntax && in.problem().empty()) {
    std::vector<std::string> names;
    for (const auto& known : kSyntax) names.emplace_back(known.name);
    return Error{
        concat("--fault: \"", text, "\": unknown fault \"", name, '"', suggest(name, names))};
  }
  if (syntax) {
    fault.kind = syntax->plain;
    if (syntax->read && (syntax->needs_brackets || in.rest().starts_with("("))) {
      in.expect("(");
      fault.kind = syntax->read(in);
      in.expect(")");
    }
    in.expect("@");
    read_when(in, fault);
    in.expect_end();
  }
  if (in.problem().empty()) return fault;
  return Error{concat("--fault: \"", text, "\" ", in.problem(), "; write ",
                      syntax ? syntax->example : "2:crash@3s or 2:throws@100")};
}

}  // namespace leeway
