#include "messages/wire.hpp"

namespace leeway::wire {

void write(schema::WorkerReport::Builder out, const msg::WorkerReport& in) {
  out.setIterations(in.iterations);
  out.setSamples(in.samples);
  out.setCorrect(in.correct);
  out.setLossSum(in.loss_sum);
  out.setComputeNs(in.compute.ns);
  out.setWaitNs(in.wait.ns);
  out.setClock(in.clock.value());
  out.setEpoch(in.epoch.value());
  out.setMemoryBytes(in.memory_bytes);
  out.setWaitBeforeNs(in.wait_before.ns);
  out.setWaitAfterNs(in.wait_after.ns);
}
msg::WorkerReport read(schema::WorkerReport::Reader in) {
  msg::WorkerReport out;
  out.iterations = in.getIterations();
  out.samples = in.getSamples();
  out.correct = in.getCorrect();
  out.loss_sum = in.getLossSum();
  out.compute = nanoseconds(read_count(in.getComputeNs(), "compute_ns"));
  out.wait = nanoseconds(read_count(in.getWaitNs(), "wait_ns"));
  out.clock = Clock(read_count(in.getClock(), "clock"));
  out.epoch = Epoch(read_count(in.getEpoch(), "epoch"));
  out.memory_bytes = in.getMemoryBytes();
  out.wait_before = nanoseconds(read_count(in.getWaitBeforeNs(), "wait_before_ns"));
  out.wait_after = nanoseconds(read_count(in.getWaitAfterNs(), "wait_after_ns"));
  return out;
}

void write(schema::ShardReport::Builder out, const msg::ShardReport& in) {
  out.setMinClock(in.min_clock.value());
  out.setMaxClock(in.max_clock.value());
  out.setMaxClockGap(in.max_clock_gap);
  out.setParkedNow(in.parked_now);
  out.setParkedPulls(in.parked_pulls);
  out.setPulls(in.pulls);
  out.setPushes(in.pushes);
  out.setRepeats(in.repeats);
  out.setRefused(in.refused);
  out.setMalformed(in.malformed);
  auto lags = out.initLags(static_cast<unsigned>(in.lags.size()));
  for (unsigned i = 0; i < in.lags.size(); ++i) lags.set(i, in.lags[i]);
  auto waits = out.initWaits(static_cast<unsigned>(in.waits.size()));
  for (unsigned i = 0; i < in.waits.size(); ++i) {
    waits[i].setWorker(in.waits[i].worker.value());
    waits[i].setForWorker(in.waits[i].for_worker.value());
    waits[i].setNs(in.waits[i].time.ns);
    waits[i].setCount(in.waits[i].count);
  }
}
msg::ShardReport read(schema::ShardReport::Reader in) {
  msg::ShardReport out;
  out.min_clock = Clock(read_count(in.getMinClock(), "min_clock"));
  out.max_clock = Clock(read_count(in.getMaxClock(), "max_clock"));
  out.max_clock_gap = read_count(in.getMaxClockGap(), "max_clock_gap");
  out.parked_now = in.getParkedNow();
  out.parked_pulls = in.getParkedPulls();
  out.pulls = in.getPulls();
  out.pushes = in.getPushes();
  out.repeats = in.getRepeats();
  out.refused = in.getRefused();
  out.malformed = in.getMalformed();
  require(in.getLags().size() <= limits::kLagBins, "lags has ", in.getLags().size(), " bins");
  for (const auto count : in.getLags()) out.lags.push_back(count);
  require(in.getWaits().size() <= limits::kMaxWaits, "waits has ", in.getWaits().size(),
          " pairs, must be at most ", limits::kMaxWaits);
  for (const auto wait : in.getWaits())
    out.waits.push_back({read_worker(wait.getWorker()), read_worker(wait.getForWorker()),
                         nanoseconds(read_count(wait.getNs(), "wait.ns")), wait.getCount()});
  return out;
}

void write(schema::SchedulerReport::Builder out, const msg::SchedulerReport& in) {
  out.setEpoch(in.epoch.value());
  out.setSamplesTrained(in.samples_trained);
  out.setPartialPushes(in.partial_pushes);
  out.setLiveWorkers(in.live_workers);
  out.setStaleness(in.staleness);
}
msg::SchedulerReport read(schema::SchedulerReport::Reader in) {
  return {Epoch(read_count(in.getEpoch(), "epoch")), in.getSamplesTrained(), in.getPartialPushes(),
          in.getLiveWorkers(), in.getStaleness()};
}

void write(schema::Evicted::Builder out, const msg::Evicted& in) {
  out.setWorker(in.worker.value());
  out.setReason(text_of(in.reason));
  out.setReturnedSamples(in.returned_samples);
  out.setPartial(in.partial);
}
msg::Evicted read(schema::Evicted::Reader in) {
  return {read_worker(in.getWorker()), read_text(in.getReason()), in.getReturnedSamples(),
          in.getPartial()};
}

void write(schema::RunEnded::Builder out, const msg::RunEnded& in) {
  out.setReason(static_cast<schema::RunEnded::Reason>(in.reason));
  out.setText(text_of(in.text));
  out.setSamplesTrained(in.samples_trained);
  out.setPartialPushes(in.partial_pushes);
  out.setDroppedPushes(in.dropped_pushes);
}
msg::RunEnded read(schema::RunEnded::Reader in) {
  return {read_enum(in.getReason(), msg::RunEnded::Reason::failed, "reason"),
          read_text(in.getText()), in.getSamplesTrained(), in.getPartialPushes(),
          in.getDroppedPushes()};
}

void write(schema::Evaluated::Builder out, const msg::Evaluated& in) {
  out.setSnapshot(in.snapshot);
  out.setLoss(in.loss);
  out.setAccuracy(in.accuracy);
}
msg::Evaluated read(schema::Evaluated::Reader in) {
  return {in.getSnapshot(), in.getLoss(), in.getAccuracy()};
}

}  // namespace leeway::wire
