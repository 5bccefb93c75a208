#include "messages/wire.hpp"

namespace leeway::wire {
namespace {

msg::StageTensor read_stage_tensor(schema::TensorRef::Reader in, ConstBlobs blobs) {
  msg::StageTensor out;
  read_tensor(in, blobs, out.dtype, out.shape, out.data);
  return out;
}

}  // namespace

void write(schema::MiniBatch::Builder out, const msg::MiniBatch& in) {
  out.setStart(in.start);
  out.setIteration(in.iteration.value());
  out.setEpoch(in.epoch.value());
  out.setBegin(in.begin);
  out.setEnd(in.end);
  out.setRoundSamples(in.round_samples);
  write_applied(out.initApplied(static_cast<unsigned>(in.applied.size())), in.applied);
}
msg::MiniBatch read(schema::MiniBatch::Reader in) {
  msg::MiniBatch out;
  out.start = in.getStart();
  out.iteration = Iteration(read_count(in.getIteration(), "iteration"));
  out.epoch = Epoch(read_count(in.getEpoch(), "epoch"));
  out.begin = read_count(in.getBegin(), "begin");
  out.end = read_count(in.getEnd(), "end");
  out.round_samples = in.getRoundSamples();
  out.applied = read_applied(in.getApplied());
  require(out.begin <= out.end, "end is ", out.end, ", must not be before begin ", out.begin);
  require(out.round_samples >= 1, "round_samples is 0, must be 1 or more");
  return out;
}

void write(schema::NoMore::Builder out, const msg::NoMore& in) {
  out.setStart(in.start);
  out.setIteration(in.iteration.value());
}
msg::NoMore read(schema::NoMore::Reader in) {
  return {in.getStart(), Iteration(read_count(in.getIteration(), "iteration"))};
}

void write(schema::Activation::Builder out, const msg::Activation& in, Blobs& blobs) {
  out.setStart(in.start);
  out.setIteration(in.iteration.value());
  out.setMicroBatch(in.micro_batch);
  out.setChunk(in.chunk);
  write_tensor(out.initTensor(), in.tensor.dtype, in.tensor.shape, in.tensor.data, blobs);
}
msg::Activation read(schema::Activation::Reader in, ConstBlobs blobs) {
  return {in.getStart(), Iteration(read_count(in.getIteration(), "iteration")), in.getMicroBatch(),
          in.getChunk(), read_stage_tensor(in.getTensor(), blobs)};
}

void write(schema::OutputGradient::Builder out, const msg::OutputGradient& in, Blobs& blobs) {
  out.setStart(in.start);
  out.setIteration(in.iteration.value());
  out.setMicroBatch(in.micro_batch);
  out.setChunk(in.chunk);
  write_tensor(out.initTensor(), in.tensor.dtype, in.tensor.shape, in.tensor.data, blobs);
  out.setClock(in.clock.value());
}
msg::OutputGradient read(schema::OutputGradient::Reader in, ConstBlobs blobs) {
  return {in.getStart(),
          Iteration(read_count(in.getIteration(), "iteration")),
          in.getMicroBatch(),
          in.getChunk(),
          read_stage_tensor(in.getTensor(), blobs),
          Clock(read_count(in.getClock(), "clock"))};
}

void write(schema::GivenUp::Builder out, const msg::GivenUp& in) {
  out.setStart(in.start);
  out.setIteration(in.iteration.value());
}
msg::GivenUp read(schema::GivenUp::Reader in) {
  return {in.getStart(), Iteration(read_count(in.getIteration(), "iteration"))};
}

}  // namespace leeway::wire
