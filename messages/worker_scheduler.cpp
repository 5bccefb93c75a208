#include "messages/wire.hpp"

namespace leeway::wire {
namespace {

std::string text_of(const msg::AppliedBucket& part) {
  return concat("bucket ", part.bucket, " at shard ", part.shard, " of stage ", part.stage);
}

}  // namespace

void write_applied(AppliedListBuilder out, const std::vector<msg::AppliedBucket>& in) {
  for (unsigned i = 0; i < in.size(); ++i) {
    out[i].setStage(in[i].stage);
    out[i].setShard(in[i].shard);
    out[i].setBucket(in[i].bucket);
  }
}
std::vector<msg::AppliedBucket> read_applied(AppliedListReader in) {
  require(in.size() <= limits::kMaxAppliedBuckets, "applied has ", in.size(),
          " entries, must be at most ", limits::kMaxAppliedBuckets);
  std::vector<msg::AppliedBucket> out;
  for (const auto one : in) {
    const msg::AppliedBucket next{one.getStage(), one.getShard(), one.getBucket()};
    if (!out.empty() && out.back() >= next)
      throw Malformed{concat("applied must be ascending, ", text_of(next), " comes after ",
                             text_of(out.back()))};
    out.push_back(next);
  }
  return out;
}

void write(schema::Start::Builder out, const msg::Start& in) {
  out.setIteration(in.iteration.value());
  out.setNumber(in.number);
}
msg::Start read(schema::Start::Reader in) {
  return {Iteration(read_count(in.getIteration(), "iteration")), in.getNumber()};
}

void write(schema::WantLease::Builder out, const msg::WantLease& in) {
  out.setNext(in.next.value());
  out.setClock(in.clock.value());
  out.setIterations(in.iterations);
  out.setSamples(in.samples);
  out.setWaitedNs(in.waited.ns);
  out.setComputedNs(in.computed.ns);
}
msg::WantLease read(schema::WantLease::Reader in) {
  return {Iteration(read_count(in.getNext(), "next")),
          Clock(read_count(in.getClock(), "clock")),
          in.getIterations(),
          in.getSamples(),
          nanoseconds(read_count(in.getWaitedNs(), "waited_ns")),
          nanoseconds(read_count(in.getComputedNs(), "computed_ns"))};
}

void write(schema::Lease::Builder out, const msg::Lease& in) {
  out.setLease(in.lease.value());
  out.setEpoch(in.epoch.value());
  out.setBegin(in.begin);
  out.setEnd(in.end);
  out.setFirstIteration(in.first_iteration.value());
  out.setBatch(in.batch);
  out.setRoundSamples(in.round_samples);
  write_applied(out.initApplied(static_cast<unsigned>(in.applied.size())), in.applied);
}
msg::Lease read(schema::Lease::Reader in) {
  msg::Lease out;
  out.lease = LeaseId(in.getLease());
  out.epoch = Epoch(read_count(in.getEpoch(), "epoch"));
  out.begin = read_count(in.getBegin(), "begin");
  out.end = read_count(in.getEnd(), "end");
  out.first_iteration = Iteration(read_count(in.getFirstIteration(), "first_iteration"));
  out.batch = in.getBatch();
  out.round_samples = in.getRoundSamples();
  out.applied = read_applied(in.getApplied());
  require(out.begin <= out.end, "end is ", out.end, ", must not be before begin ", out.begin);
  require(out.batch >= 1, "batch is 0, must be 1 or more");
  require(out.round_samples >= 1, "round_samples is 0, must be 1 or more");
  return out;
}

void write(schema::NoData::Builder out, const msg::NoData& in) {
  out.setNext(in.next.value());
}
msg::NoData read(schema::NoData::Reader in) {
  return {Iteration(read_count(in.getNext(), "next"))};
}

void write(schema::PushDropped::Builder out, const msg::PushDropped& in) {
  out.setNext(in.next.value());
}
msg::PushDropped read(schema::PushDropped::Reader in) {
  return {Iteration(read_count(in.getNext(), "next"))};
}

void write(schema::Idle::Builder out, const msg::Idle& in) {
  out.setClock(in.clock.value());
  out.setStart(in.start);
}
msg::Idle read(schema::Idle::Reader in) {
  return {Clock(read_count(in.getClock(), "clock")), in.getStart()};
}

void write(schema::Diverged::Builder out, const msg::Diverged& in) {
  out.setIteration(in.iteration.value());
  out.setLoss(in.loss);
  out.setLayer(text_of(in.layer));
}
msg::Diverged read(schema::Diverged::Reader in) {
  return {Iteration(read_count(in.getIteration(), "iteration")), in.getLoss(),
          read_text(in.getLayer())};
}

void write(schema::Leave::Builder out, const msg::Leave& in) {
  out.setWorker(in.worker.value());
}
msg::Leave read(schema::Leave::Reader in) {
  return {read_worker(in.getWorker())};
}

void write(schema::Stopped::Builder out, const msg::Stopped& in) {
  out.setClock(in.clock.value());
  out.setStart(in.start);
}
msg::Stopped read(schema::Stopped::Reader in) {
  return {Clock(read_count(in.getClock(), "clock")), in.getStart()};
}

}  // namespace leeway::wire
