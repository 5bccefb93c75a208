#include "messages/wire.hpp"

namespace leeway::wire {
namespace {

/// Of a RoundClosed or a CloseRound.
template <class Builder>
void write_contributors(Builder out, const std::vector<WorkerId>& in) {
  auto list = out.initContributors(static_cast<unsigned>(in.size()));
  for (unsigned i = 0; i < in.size(); ++i) list.set(i, in[i].value());
}

std::vector<WorkerId> read_contributors(capnp::List<std::uint32_t>::Reader in) {
  require(in.size() <= limits::kMaxWorkers, "contributors has ", in.size(),
          " entries, must be at most ", limits::kMaxWorkers);
  std::vector<WorkerId> out;
  for (const std::uint32_t worker : in) {
    const WorkerId next = read_worker(worker);
    require(out.empty() || out.back() < next, "contributors must be ascending, ", next,
            " comes after ", out.empty() ? next : out.back());
    out.push_back(next);
  }
  return out;
}

}  // namespace

void write(schema::Admit::Builder out, const msg::Admit& in) {
  out.setWorker(in.worker.value());
  out.setIncarnation(in.incarnation.value());
  out.setIteration(in.iteration.value());
  out.setView(in.view.value());
}
msg::Admit read(schema::Admit::Reader in) {
  return {read_worker(in.getWorker()), Incarnation(in.getIncarnation()),
          Iteration(read_count(in.getIteration(), "iteration")), View(in.getView())};
}

void write(schema::Admitted::Builder out, const msg::Admitted& in) {
  out.setWorker(in.worker.value());
  out.setIteration(in.iteration.value());
  out.setView(in.view.value());
}
msg::Admitted read(schema::Admitted::Reader in) {
  return {read_worker(in.getWorker()), Iteration(read_count(in.getIteration(), "iteration")),
          View(in.getView())};
}

void write(schema::Raise::Builder out, const msg::Raise& in) {
  out.setWorker(in.worker.value());
  out.setIteration(in.iteration.value());
  out.setView(in.view.value());
}
msg::Raise read(schema::Raise::Reader in) {
  return {read_worker(in.getWorker()), Iteration(read_count(in.getIteration(), "iteration")),
          View(in.getView())};
}

void write(schema::Fence::Builder out, const msg::Fence& in) {
  out.setWorker(in.worker.value());
  out.setView(in.view.value());
}
msg::Fence read(schema::Fence::Reader in) {
  return {read_worker(in.getWorker()), View(in.getView())};
}

void write(schema::Fenced::Builder out, const msg::Fenced& in) {
  out.setWorker(in.worker.value());
  out.setClock(in.clock.value());
  auto applied = out.initApplied(static_cast<unsigned>(in.applied.size()));
  for (unsigned i = 0; i < in.applied.size(); ++i) applied.set(i, in.applied[i]);
}
msg::Fenced read(schema::Fenced::Reader in) {
  msg::Fenced out{read_worker(in.getWorker()), Clock(read_count(in.getClock(), "clock")), {}};
  const auto applied = in.getApplied();
  require(applied.size() <= limits::kMaxBuckets, "applied has ", applied.size(),
          " entries, must be at most ", limits::kMaxBuckets);
  for (const std::uint32_t part : applied) {
    read_index(part, limits::kMaxBuckets, "applied");
    require(out.applied.empty() || out.applied.back() < part, "applied must be ascending, ", part,
            " comes after ", out.applied.empty() ? part : out.applied.back());
    out.applied.push_back(part);
  }
  return out;
}

void write(schema::Remove::Builder out, const msg::Remove& in) {
  out.setWorker(in.worker.value());
  out.setView(in.view.value());
}
msg::Remove read(schema::Remove::Reader in) {
  return {read_worker(in.getWorker()), View(in.getView())};
}

void write(schema::Bound::Builder out, const msg::Bound& in) {
  out.setFrom(in.from.value());
  out.setStaleness(in.staleness);
}
msg::Bound read(schema::Bound::Reader in) {
  return {Iteration(read_count(in.getFrom(), "from")), in.getStaleness()};
}

void write(schema::RoundClosed::Builder out, const msg::RoundClosed& in) {
  out.setRound(in.round.value());
  write_contributors(out, in.contributors);
  out.setView(in.view.value());
}
msg::RoundClosed read(schema::RoundClosed::Reader in) {
  return {Iteration(read_count(in.getRound(), "round")), read_contributors(in.getContributors()),
          View(in.getView())};
}

void write(schema::CloseRound::Builder out, const msg::CloseRound& in) {
  out.setRound(in.round.value());
  write_contributors(out, in.contributors);
  out.setView(in.view.value());
}
msg::CloseRound read(schema::CloseRound::Reader in) {
  return {Iteration(read_count(in.getRound(), "round")), read_contributors(in.getContributors()),
          View(in.getView())};
}

void write(schema::Snapshot::Builder out, const msg::Snapshot& in) {
  out.setSnapshot(in.snapshot);
  out.setIteration(in.iteration.value());
  out.setImmediate(in.immediate);
}
msg::Snapshot read(schema::Snapshot::Reader in) {
  return {in.getSnapshot(), Iteration(read_count(in.getIteration(), "iteration")),
          in.getImmediate()};
}

void write(schema::SnapshotVote::Builder out, const msg::SnapshotVote& in) {
  out.setSnapshot(in.snapshot);
  out.setIteration(in.iteration.value());
  out.setLargest(in.largest.value());
}
msg::SnapshotVote read(schema::SnapshotVote::Reader in) {
  return {in.getSnapshot(), Iteration(read_count(in.getIteration(), "iteration")),
          Iteration(read_count(in.getLargest(), "largest"))};
}

void write(schema::SnapshotState::Builder out, const msg::SnapshotState& in, Blobs& blobs) {
  out.setSnapshot(in.snapshot);
  out.setIteration(in.iteration.value());
  out.setFinal(in.final);
  write_blocks(out.initBlocks(static_cast<unsigned>(in.blocks.size())), in.blocks, blobs);
}
msg::SnapshotState read(schema::SnapshotState::Reader in, ConstBlobs blobs) {
  msg::SnapshotState out;
  out.snapshot = in.getSnapshot();
  out.iteration = Iteration(read_count(in.getIteration(), "iteration"));
  out.final = in.getFinal();
  out.blocks = read_blocks(in.getBlocks(), blobs);
  for (const auto& block : out.blocks)
    require(bool(block.data), "block ", block.block, " has no data");
  return out;
}

}  // namespace leeway::wire
