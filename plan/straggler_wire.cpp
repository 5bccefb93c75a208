// A plan's stragglers <-> Cap'n Proto.
#include "plan/wire.hpp"

namespace leeway::wire {

namespace {

// One overload for each arm; std::visit picks it.

void write(plan_schema::Straggler::Builder out, const plan::ConstantFactor& in) {
  out.setFactor(in.factor);
}
void write(plan_schema::Straggler::Builder out, const plan::Bursts& in) {
  auto bursts = out.initBursts();
  bursts.setFactor(in.factor);
  bursts.setShare(in.share);
  bursts.setLength(in.length);
}
void write(plan_schema::Straggler::Builder out, const plan::Pareto& in) {
  auto pareto = out.initPareto();
  pareto.setAlpha(in.alpha);
  pareto.setCap(in.cap);
}
void write(plan_schema::Straggler::Builder out, const plan::Pauses& in) {
  auto pauses = out.initPauses();
  pauses.setLengthMs(in.length_ms);
  if (const auto* iterations = std::get_if<std::uint32_t>(&in.every))
    pauses.setIterations(*iterations);
  else
    pauses.setSeconds(std::get<double>(in.every));
}
void write(plan_schema::Straggler::Builder out, const plan::Decay& in) {
  auto decay = out.initDecay();
  decay.setFactor(in.factor);
  decay.setIterations(in.iterations);
}
void write(plan_schema::Straggler::Builder out, const plan::Sharing& in) {
  auto sharing = out.initSharing();
  sharing.setFactor(in.factor);
  sharing.setOn(in.on);
  sharing.setOff(in.off);
}
void write(plan_schema::Straggler::Builder out, const plan::Trace& in) {
  out.initTrace().setFile(text_of(in.file));
}

plan::Pauses read(plan_schema::Straggler::Pauses::Reader in) {
  switch (in.which()) {
    case plan_schema::Straggler::Pauses::ITERATIONS:
      return {in.getLengthMs(), in.getIterations()};
    case plan_schema::Straggler::Pauses::SECONDS:
      return {in.getLengthMs(), in.getSeconds()};
  }
  unknown_arm("straggler.pauses", in.which());
}

plan::StragglerKind read_kind(plan_schema::Straggler::Reader in) {
  switch (in.which()) {
    case plan_schema::Straggler::FACTOR:
      return plan::ConstantFactor{in.getFactor()};
    case plan_schema::Straggler::BURSTS: {
      const auto bursts = in.getBursts();
      return plan::Bursts{bursts.getFactor(), bursts.getShare(), bursts.getLength()};
    }
    case plan_schema::Straggler::PARETO:
      return plan::Pareto{in.getPareto().getAlpha(), in.getPareto().getCap()};
    case plan_schema::Straggler::PAUSES:
      return read(in.getPauses());
    case plan_schema::Straggler::DECAY:
      return plan::Decay{in.getDecay().getFactor(), in.getDecay().getIterations()};
    case plan_schema::Straggler::SHARING: {
      const auto sharing = in.getSharing();
      return plan::Sharing{sharing.getFactor(), sharing.getOn(), sharing.getOff()};
    }
    case plan_schema::Straggler::TRACE:
      return plan::Trace{read_text(in.getTrace().getFile())};
  }
  unknown_arm("straggler", in.which());
}

}  // namespace

void write(plan_schema::Straggler::Builder out, const plan::Straggler& in) {
  out.setWorker(in.worker);
  out.setAll(in.all);
  std::visit([&](const auto& kind) { write(out, kind); }, in.kind);
}

plan::Straggler read(plan_schema::Straggler::Reader in) {
  return {in.getWorker(), in.getAll(), read_kind(in)};
}

}  // namespace leeway::wire
