// Cap'n Proto -> values of the conversation between hosts. The readers throw wire::Malformed;
// decode_node turns it into an Error.
#include <array>
#include <cmath>

#include "messages/node.hpp"
#include "messages/sealed.hpp"
#include "node.capnp.h"

namespace leeway {
namespace {

using wire::ConstBlobs;
using wire::read_count;
using wire::read_text;
using wire::require;

/// A list into a vector, once its size is known to be sensible.
template <class T, class List, class Read>
std::vector<T> read_all(List in, std::size_t most, const char* field, Read read) {
  require(in.size() <= most, field, " has ", in.size(), " entries, must be at most ", most);
  std::vector<T> out;
  for (const auto& item : in) out.push_back(read(item));
  return out;
}

std::vector<std::uint32_t> read_numbers(capnp::List<std::uint32_t>::Reader in, std::size_t most,
                                        const char* field) {
  return read_all<std::uint32_t>(in, most, field, [](std::uint32_t number) { return number; });
}

std::vector<std::string> read_texts(capnp::List<capnp::Text>::Reader in, std::size_t most,
                                    const char* field) {
  return read_all<std::string>(in, most, field,
                               [](capnp::Text::Reader text) { return read_text(text); });
}

std::uint32_t read_node(std::uint32_t value) {
  return wire::read_index(value, limits::kMaxNodes, "node");
}

Address read(node_schema::Actor::Reader in) {
  require(in.getKind() <= static_cast<unsigned>(RoleKind::host), "actor has the unknown kind ",
          unsigned{in.getKind()});
  const Address actor{static_cast<RoleKind>(in.getKind()), in.getIndex()};
  const std::uint32_t end = actor.kind == RoleKind::worker  ? limits::kMaxWorkers
                            : actor.kind == RoleKind::shard ? limits::kMaxShards
                                                            : 1;
  wire::read_index(actor.index, end, "actor");
  return actor;
}

node::DataMark read(node_schema::DataMark::Reader in) {
  node::DataMark out;
  out.train_samples = read_count(in.getTrainSamples(), "data.train_samples");
  out.test_samples = read_count(in.getTestSamples(), "data.test_samples");
  const auto shape = in.getShape();
  require(shape.size() <= limits::kMaxRank, "data.shape has ", shape.size(),
          " extents, must be at most ", limits::kMaxRank);
  std::vector<std::int64_t> extents;
  std::int64_t floats = 1;
  for (const std::int64_t extent : shape) {
    require(extent >= 1 && extent <= (std::int64_t{1} << 32) / floats, "data.shape has the extent ",
            extent, ", which is 0 or makes samples too large");
    floats *= extent;
    extents.push_back(extent);
  }
  out.shape = Shape(extents);
  out.classes = in.getClasses();
  out.targets = read_count(in.getTargets(), "data.targets");
  require(out.classes < (1u << 31), "data.classes is ", out.classes, ", too many");
  require((out.classes > 0) != (out.targets > 0), "data has ", out.classes, " classes and ",
          out.targets, " targets, must have one of them");
  require(out.targets <= (std::int64_t{1} << 32), "data.targets is ", out.targets, ", too many");
  out.background = in.getBackground();
  require(std::isfinite(out.background), "data.background is not finite");
  out.checksum = in.getChecksum();
  out.labels = in.getLabels();
  require(out.labels >= 1, "data.labels is 0, must be at least 1");
  return out;
}

node::Ask read(node_schema::Ask::Reader in, ConstBlobs blobs) {
  node::Ask out;
  out.version = read_text(in.getVersion());
  out.who = read_text(in.getWho());
  const auto plan = in.getPlan();
  require(plan.size() % sizeof(std::uint64_t) == 0, "plan has ", plan.size(),
          " bytes, must be whole words");
  std::vector<std::uint64_t> words(plan.size() / sizeof(std::uint64_t));
  std::copy_n(plan.begin(), plan.size(), reinterpret_cast<kj::byte*>(words.data()));
  out.plan = Message(words, {});
  out.nodes = read_texts(in.getNodes(), limits::kMaxNodes, "nodes");
  out.self = wire::read_index(in.getSelf(), static_cast<std::uint32_t>(out.nodes.size()), "self");
  out.shards = read_numbers(in.getShards(), limits::kMaxShards, "shards");
  out.workers = read_numbers(in.getWorkers(), limits::kMaxWorkers, "workers");
  for (const std::uint32_t node : out.shards)
    wire::read_index(node, static_cast<std::uint32_t>(out.nodes.size()), "node of a shard");
  for (const std::uint32_t node : out.workers)
    require(node < out.nodes.size() || node == 0xffffffff, "node of a worker is ", node,
            ", must be below ", out.nodes.size());
  out.data = read(in.getData());
  out.trace = in.getTrace();
  out.initial_weights.assign(blobs.begin(), blobs.end());
  return out;
}

node::Answer read(node_schema::Answer::Reader in) {
  node::Answer out;
  out.version = read_text(in.getVersion());
  out.cores = in.getCores();
  out.memory_bytes = in.getMemoryBytes();
  out.gpus = in.getGpus();
  out.busy = read_text(in.getBusy());
  out.problems = read_texts(in.getProblems(), 1000, "problems");
  out.wants_data = in.getWantsData();
  return out;
}

node::Chunk read(node_schema::Chunk::Reader in, ConstBlobs blobs) {
  require(blobs.size() == 2, "has ", blobs.size(), " blobs, must have 2");
  return {in.getTest(), read_count(in.getFirst(), "first"), in.getSamples(), blobs[0], blobs[1]};
}

node::Ended read(node_schema::Ended::Reader in) {
  return {read(in.getActor()), in.getLife(), read_text(in.getReason())};
}

node::Moved read(node_schema::Moved::Reader in) {
  return {wire::read_worker(in.getWorker()), read_node(in.getNode()), in.getLife()};
}

node::Events::Event read(node_schema::Events::Event::Reader in) {
  return {in.getNs(),          read(in.getActor()),
          in.getKind(),        wire::read_worker(in.getWorker()),
          in.getIteration(),   in.getValue(),
          in.getValue2(),      in.getEpoch(),
          in.getIncarnation(), read_text(in.getName()),
          in.getChunk()};
}

node::Status::Link read(node_schema::Status::Link::Reader in) {
  return {read_node(in.getNode()), read_text(in.getState()), in.getSharedMemory(),
          in.getMessagesOut(),     in.getMessagesIn(),       in.getBytesOut(),
          in.getBytesIn(),         in.getWaiting()};
}

node::Status read(node_schema::Status::Reader in) {
  node::Status out;
  out.version = read_text(in.getVersion());
  out.program = in.getProgram();
  out.name = read_text(in.getName());
  out.node = read_node(in.getNode());
  out.job = read_text(in.getJob());
  out.seconds = in.getSeconds();
  require(std::isfinite(out.seconds), "seconds is not finite");
  out.nodes = read_texts(in.getNodes(), limits::kMaxNodes, "nodes");
  out.actors = read_all<Address>(in.getActors(), limits::kMaxWorkers + limits::kMaxShards + 2,
                                 "actors", [](auto actor) { return read(actor); });
  out.clocks = read_all<node::Status::WorkerClock>(
      in.getClocks(), limits::kMaxWorkers, "clocks", [](auto clock) {
        return node::Status::WorkerClock{wire::read_worker(clock.getWorker()), clock.getClock()};
      });
  out.parked = read_all<node::Status::Parked>(
      in.getParked(), limits::kMaxWorkers, "parked", [](auto parked) {
        return node::Status::Parked{
            ShardId(wire::read_index(parked.getShard(), limits::kMaxShards, "shard")),
            wire::read_worker(parked.getWorker()), parked.getIteration(),
            read_numbers(parked.getBehind(), limits::kMaxWorkers, "behind")};
      });
  out.links = read_all<node::Status::Link>(in.getLinks(), limits::kMaxNodes, "links",
                                           [](auto link) { return read(link); });
  out.stages = in.getStages();
  require(out.stages >= 1 && out.stages <= limits::kMaxWorkers, "stages is ", out.stages);
  out.did = read_all<node::Status::Operation>(
      in.getDid(), limits::kMaxWorkers, "did", [](auto operation) {
        return node::Status::Operation{wire::read_worker(operation.getWorker()),
                                       operation.getKind(), operation.getIteration(),
                                       operation.getMicroBatch()};
      });
  return out;
}

node::Body read_body(node_schema::NodeEnvelope::Body::Reader in, ConstBlobs blobs) {
  using Schema = node_schema::NodeEnvelope::Body;
  if (in.which() != Schema::ASK && in.which() != Schema::CHUNK)
    require(blobs.empty(), "has ", blobs.size(), " blobs, must have none");
  switch (in.which()) {
    case Schema::NONE:
      break;
    case Schema::ASK:
      return read(in.getAsk(), blobs);
    case Schema::ANSWER:
      return read(in.getAnswer());
    case Schema::CHUNK:
      return read(in.getChunk(), blobs);
    case Schema::STORED:
      return node::Stored{read_count(in.getStored().getSamples(), "samples")};
    case Schema::START:
      return node::Start{};
    case Schema::HERE:
      return node::Here{read_node(in.getHere().getNode()), read_text(in.getHere().getName())};
    case Schema::LINKED:
      return node::Linked{};
    case Schema::REFUSED:
      return node::Refused{read_text(in.getRefused().getText())};
    case Schema::BEGIN:
      return node::Begin{};
    case Schema::ENDED:
      return read(in.getEnded());
    case Schema::MOVED:
      return read(in.getMoved());
    case Schema::LEAVING:
      return node::Leaving{};
    case Schema::LEFT:
      return node::Left{};
    case Schema::END:
      return node::End{read_text(in.getEnd().getText())};
    case Schema::DONE:
      return node::Done{};
    case Schema::OFFER:
      return node::Offer{read_text(in.getOffer().getName())};
    case Schema::STATUS_REQUEST:
      return node::StatusRequest{};
    case Schema::STATUS:
      return read(in.getStatus());
    case Schema::PING:
      return node::Ping{in.getPing().getNs()};
    case Schema::PONG:
      return node::Pong{in.getPong().getNs(), in.getPong().getClockNs()};
    case Schema::EVENTS:
      return node::Events{read_all<node::Events::Event>(in.getEvents().getEvents(),
                                                        limits::kMaxEventBatch, "events",
                                                        [](auto event) { return read(event); })};
  }
  throw wire::Malformed{concat("body is of the unknown kind ", static_cast<unsigned>(in.which()))};
}

constexpr std::array<std::string_view, std::variant_size_v<node::Body>> kNodeNames = {
    "ask",     "answer", "chunk",          "stored", "start",   "here", "linked",
    "refused", "begin",  "ended",          "moved",  "leaving", "left", "end",
    "done",    "offer",  "status request", "status", "ping",    "pong", "events"};

}  // namespace

std::string_view node::name_of(const node::Body& body) {
  return kNodeNames[body.index()];
}

Expected<NodeEnvelope> decode_node(const Message& message) {
  using Schema = node_schema::NodeEnvelope;
  return wire::opened<Schema>(message, kNodeNames, [&](Schema::Reader in) {
    return NodeEnvelope{in.getJob(), read_body(in.getBody(), message.blobs())};
  });
}

}  // namespace leeway
