// Values of the conversation between hosts -> Cap'n Proto.
#include "messages/node.hpp"
#include "messages/sealed.hpp"
#include "node.capnp.h"

namespace leeway {
namespace {

using wire::text_of;

template <class List, class T, class Write>
void write_all(List out, const std::vector<T>& in, Write write) {
  for (unsigned i = 0; i < in.size(); ++i) write(out[i], in[i]);
}

template <class List>
void write_numbers(List out, const std::vector<std::uint32_t>& in) {
  for (unsigned i = 0; i < in.size(); ++i) out.set(i, in[i]);
}

template <class List>
void write_texts(List out, const std::vector<std::string>& in) {
  for (unsigned i = 0; i < in.size(); ++i) out.set(i, text_of(in[i]));
}

unsigned count(const auto& list) {
  return static_cast<unsigned>(list.size());
}

void write(node_schema::Actor::Builder out, Address in) {
  out.setKind(static_cast<std::uint8_t>(in.kind));
  out.setIndex(in.index);
}

void write(node_schema::DataMark::Builder out, const node::DataMark& in) {
  out.setTrainSamples(in.train_samples);
  out.setTestSamples(in.test_samples);
  auto shape = out.initShape(static_cast<unsigned>(in.shape.rank()));
  for (int i = 0; i < in.shape.rank(); ++i) shape.set(static_cast<unsigned>(i), in.shape[i]);
  out.setClasses(in.classes);
  out.setTargets(in.targets);
  out.setBackground(in.background);
  out.setChecksum(in.checksum);
  out.setLabels(static_cast<std::uint32_t>(in.labels));
}

void write(node_schema::Events::Event::Builder out, const node::Events::Event& in) {
  out.setNs(in.ns);
  write(out.initActor(), in.actor);
  out.setKind(in.kind);
  out.setWorker(in.worker.value());
  out.setIteration(in.iteration);
  out.setValue(in.value);
  out.setValue2(in.value2);
  out.setEpoch(in.epoch);
  out.setIncarnation(in.incarnation);
  if (!in.name.empty()) out.setName(text_of(in.name));
  out.setChunk(in.chunk);
}

void write(node_schema::Status::Parked::Builder out, const node::Status::Parked& in) {
  out.setShard(in.shard.value());
  out.setWorker(in.worker.value());
  out.setIteration(in.iteration);
  write_numbers(out.initBehind(count(in.behind)), in.behind);
}

void write(node_schema::Status::Link::Builder out, const node::Status::Link& in) {
  out.setNode(in.node);
  out.setState(text_of(in.state));
  out.setSharedMemory(in.shared_memory);
  out.setMessagesOut(in.messages_out);
  out.setMessagesIn(in.messages_in);
  out.setBytesOut(in.bytes_out);
  out.setBytesIn(in.bytes_in);
  out.setWaiting(in.waiting);
}

void write(node_schema::Status::Builder out, const node::Status& in) {
  out.setVersion(text_of(in.version));
  out.setProgram(in.program);
  out.setName(text_of(in.name));
  out.setNode(in.node);
  out.setJob(text_of(in.job));
  out.setSeconds(in.seconds);
  write_texts(out.initNodes(count(in.nodes)), in.nodes);
  write_all(out.initActors(count(in.actors)), in.actors,
            [](auto to, Address actor) { write(to, actor); });
  write_all(out.initClocks(count(in.clocks)), in.clocks, [](auto to, const auto& clock) {
    to.setWorker(clock.worker.value());
    to.setClock(clock.clock);
  });
  write_all(out.initParked(count(in.parked)), in.parked,
            [](auto to, const auto& parked) { write(to, parked); });
  write_all(out.initLinks(count(in.links)), in.links,
            [](auto to, const auto& link) { write(to, link); });
  out.setStages(in.stages);
  write_all(out.initDid(count(in.did)), in.did, [](auto to, const auto& operation) {
    to.setWorker(operation.worker.value());
    to.setKind(operation.kind);
    to.setIteration(operation.iteration);
    to.setMicroBatch(operation.micro_batch);
  });
}

/// Writes each arm of Body into the union's arm of the same name.
struct NodeBodyWriter {
  node_schema::NodeEnvelope::Body::Builder out;
  std::vector<Blob>& blobs;

  void operator()(const node::Ask& in) {
    auto ask = out.initAsk();
    ask.setVersion(text_of(in.version));
    ask.setWho(text_of(in.who));
    const auto plan = in.plan.header();
    ask.setPlan(kj::arrayPtr(reinterpret_cast<const kj::byte*>(plan.data()), plan.size_bytes()));
    ask.setSelf(in.self);
    write_texts(ask.initNodes(count(in.nodes)), in.nodes);
    write_numbers(ask.initShards(count(in.shards)), in.shards);
    write_numbers(ask.initWorkers(count(in.workers)), in.workers);
    write(ask.initData(), in.data);
    ask.setTrace(in.trace);
    blobs = in.initial_weights;
  }
  void operator()(const node::Answer& in) {
    auto answer = out.initAnswer();
    answer.setVersion(text_of(in.version));
    answer.setCores(in.cores);
    answer.setMemoryBytes(in.memory_bytes);
    answer.setGpus(in.gpus);
    answer.setBusy(text_of(in.busy));
    write_texts(answer.initProblems(count(in.problems)), in.problems);
    answer.setWantsData(in.wants_data);
  }
  void operator()(const node::Chunk& in) {
    auto chunk = out.initChunk();
    chunk.setTest(in.test);
    chunk.setFirst(in.first);
    chunk.setSamples(in.samples);
    blobs = {in.x, in.y};
  }
  void operator()(const node::Stored& in) { out.initStored().setSamples(in.samples); }
  void operator()(const node::Start&) { out.setStart(); }
  void operator()(const node::Here& in) {
    auto here = out.initHere();
    here.setNode(in.node);
    here.setName(text_of(in.name));
  }
  void operator()(const node::Linked&) { out.setLinked(); }
  void operator()(const node::Refused& in) { out.initRefused().setText(text_of(in.text)); }
  void operator()(const node::Begin&) { out.setBegin(); }
  void operator()(const node::Ended& in) {
    auto ended = out.initEnded();
    write(ended.initActor(), in.actor);
    ended.setLife(in.life);
    ended.setReason(text_of(in.reason));
  }
  void operator()(const node::Moved& in) {
    auto moved = out.initMoved();
    moved.setWorker(in.worker.value());
    moved.setNode(in.node);
    moved.setLife(in.life);
  }
  void operator()(const node::Leaving&) { out.setLeaving(); }
  void operator()(const node::Left&) { out.setLeft(); }
  void operator()(const node::End& in) { out.initEnd().setText(text_of(in.text)); }
  void operator()(const node::Done&) { out.setDone(); }
  void operator()(const node::Offer& in) { out.initOffer().setName(text_of(in.name)); }
  void operator()(const node::StatusRequest&) { out.setStatusRequest(); }
  void operator()(const node::Status& in) { write(out.initStatus(), in); }
  void operator()(const node::Ping& in) { out.initPing().setNs(in.ns); }
  void operator()(const node::Pong& in) {
    auto pong = out.initPong();
    pong.setNs(in.ns);
    pong.setClockNs(in.clock_ns);
  }
  void operator()(const node::Events& in) {
    write_all(out.initEvents().initEvents(count(in.events)), in.events,
              [](auto to, const auto& event) { write(to, event); });
  }
};

}  // namespace

Message encode(const NodeEnvelope& envelope) {
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<node_schema::NodeEnvelope>();
  root.setProtocol(kProtocolVersion);
  root.setJob(envelope.job);
  std::vector<Blob> blobs;
  std::visit(NodeBodyWriter{root.getBody(), blobs}, envelope.body);
  return wire::sealed(builder, blobs);
}

}  // namespace leeway
