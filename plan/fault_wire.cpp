// A plan's faults <-> Cap'n Proto.
#include "plan/wire.hpp"

namespace leeway::wire {

namespace {

std::string address_text(Address address) {
  return spelled(address);
}

Address read_actor(capnp::Text::Reader in, const char* field) {
  const auto address = parse_address(read_text(in));
  require(address.has_value(), field, ": ", address ? "" : address.error().text);
  return *address;
}

// One overload for each arm; std::visit picks it.

using Builder = plan_schema::Fault::Builder;

void write(Builder out, const plan::Throws&) {
  out.setThrows();
}
void write(Builder out, const plan::Killed&) {
  out.setKilled();
}
void write(Builder out, const plan::Crash& in) {
  out.initCrash().setBack(in.back);
}
void write(Builder out, const plan::Joins&) {
  out.setJoins();
}
void write(Builder out, const plan::Freeze& in) {
  out.initFreeze().setSeconds(in.seconds);
}
void write(Builder out, const plan::Slow& in) {
  auto slow = out.initSlow();
  slow.setDelayMs(in.delay_ms);
  slow.setSeconds(in.seconds);
}
void write(Builder out, const plan::Breaks& in) {
  auto breaks = out.initBreaks();
  breaks.setPeer(address_text(in.peer));
  breaks.setSeconds(in.seconds);
}
void write(Builder out, const plan::Delay& in) {
  auto delay = out.initDelay();
  delay.setPeer(address_text(in.peer));
  delay.setDelayMs(in.delay_ms);
  delay.setSeconds(in.seconds);
}
void write(Builder out, const plan::Silence& in) {
  auto silence = out.initSilence();
  silence.setPeer(address_text(in.peer));
  silence.setSeconds(in.seconds);
}
void write(Builder out, const plan::Partition& in) {
  auto partition = out.initPartition();
  auto with = partition.initWith(static_cast<unsigned>(in.with.size()));
  for (unsigned i = 0; i < in.with.size(); ++i) with.set(i, address_text(in.with[i]));
  partition.setSeconds(in.seconds);
}
void write(Builder out, const plan::SlowLink& in) {
  auto slow = out.initSlowLink();
  slow.setFactor(in.factor);
  slow.setSeconds(in.seconds);
}
void write(Builder out, const plan::ClockStops& in) {
  out.initClockStops().setSeconds(in.seconds);
}
void write(Builder out, const plan::Leaves&) {
  out.setLeaves();
}

plan::Partition read(plan_schema::Fault::Partition::Reader in) {
  plan::Partition out;
  require(in.getWith().size() <= limits::kMaxWorkers, "fault.partition.with has ",
          in.getWith().size(), " actors, at most ", limits::kMaxWorkers, " are allowed");
  for (const auto actor : in.getWith())
    out.with.push_back(read_actor(actor, "fault.partition.with"));
  out.seconds = in.getSeconds();
  return out;
}

plan::FaultTime read(plan_schema::Fault::At::Reader in) {
  switch (in.which()) {
    case plan_schema::Fault::At::ITERATION:
      return in.getIteration();
    case plan_schema::Fault::At::SECONDS:
      return in.getSeconds();
  }
  unknown_arm("fault.at", in.which());
}

plan::FaultKind read_kind(plan_schema::Fault::Reader in) {
  using Fault = plan_schema::Fault;
  switch (in.which()) {
    case Fault::THROWS:
      return plan::Throws{};
    case Fault::KILLED:
      return plan::Killed{};
    case Fault::CRASH:
      return plan::Crash{in.getCrash().getBack()};
    case Fault::JOINS:
      return plan::Joins{};
    case Fault::FREEZE:
      return plan::Freeze{in.getFreeze().getSeconds()};
    case Fault::SLOW:
      return plan::Slow{in.getSlow().getDelayMs(), in.getSlow().getSeconds()};
    case Fault::BREAKS:
      return plan::Breaks{read_actor(in.getBreaks().getPeer(), "fault.breaks.peer"),
                          in.getBreaks().getSeconds()};
    case Fault::DELAY:
      return plan::Delay{read_actor(in.getDelay().getPeer(), "fault.delay.peer"),
                         in.getDelay().getDelayMs(), in.getDelay().getSeconds()};
    case Fault::SILENCE:
      return plan::Silence{read_actor(in.getSilence().getPeer(), "fault.silence.peer"),
                           in.getSilence().getSeconds()};
    case Fault::PARTITION:
      return read(in.getPartition());
    case Fault::SLOW_LINK:
      return plan::SlowLink{in.getSlowLink().getFactor(), in.getSlowLink().getSeconds()};
    case Fault::CLOCK_STOPS:
      return plan::ClockStops{in.getClockStops().getSeconds()};
    case Fault::LEAVES:
      return plan::Leaves{};
  }
  unknown_arm("fault", in.which());
}

}  // namespace

void write(plan_schema::Fault::Builder out, const plan::Fault& in) {
  out.setActor(address_text(in.actor));
  if (const auto* iteration = std::get_if<std::int64_t>(&in.at))
    out.initAt().setIteration(*iteration);
  else
    out.initAt().setSeconds(std::get<double>(in.at));
  out.setSpread(in.spread);
  std::visit([&](const auto& kind) { write(out, kind); }, in.kind);
}

plan::Fault read(plan_schema::Fault::Reader in) {
  return {read_actor(in.getActor(), "fault.actor"), read(in.getAt()), in.getSpread(),
          read_kind(in)};
}

}  // namespace leeway::wire
