#include "messages/envelope.hpp"

#include <array>
#include <cstring>

#include "messages/sealed.hpp"

namespace leeway {
namespace {

using BodyBuilder = schema::Envelope::Body::Builder;
using BodyReader = schema::Envelope::Body::Reader;

/// Writes each arm of Body into the union's arm of the same name.
struct BodyWriter {
  BodyBuilder out;
  wire::Blobs& blobs;

  void operator()(const msg::Pull& in) { wire::write(out.initPull(), in); }
  void operator()(const msg::Weights& in) { wire::write(out.initWeights(), in, blobs); }
  void operator()(const msg::Push& in) { wire::write(out.initPush(), in, blobs); }
  void operator()(const msg::Pushed& in) { wire::write(out.initPushed(), in); }
  void operator()(const msg::Refused& in) { wire::write(out.initRefused(), in); }
  void operator()(const msg::Join&) { out.initJoin(); }
  void operator()(const msg::Start& in) { wire::write(out.initStart(), in); }
  void operator()(const msg::WantLease& in) { wire::write(out.initWantLease(), in); }
  void operator()(const msg::Lease& in) { wire::write(out.initLease(), in); }
  void operator()(const msg::NoData& in) { wire::write(out.initNoData(), in); }
  void operator()(const msg::Idle& in) { wire::write(out.initIdle(), in); }
  void operator()(const msg::Diverged& in) { wire::write(out.initDiverged(), in); }
  void operator()(const msg::Stop&) { out.initStop(); }
  void operator()(const msg::Stopped& in) { wire::write(out.initStopped(), in); }
  void operator()(const msg::Admit& in) { wire::write(out.initAdmit(), in); }
  void operator()(const msg::Admitted& in) { wire::write(out.initAdmitted(), in); }
  void operator()(const msg::Raise& in) { wire::write(out.initRaise(), in); }
  void operator()(const msg::Fence& in) { wire::write(out.initFence(), in); }
  void operator()(const msg::Fenced& in) { wire::write(out.initFenced(), in); }
  void operator()(const msg::Remove& in) { wire::write(out.initRemove(), in); }
  void operator()(const msg::Snapshot& in) { wire::write(out.initSnapshot(), in); }
  void operator()(const msg::SnapshotVote& in) { wire::write(out.initSnapshotVote(), in); }
  void operator()(const msg::Finish&) { out.initFinish(); }
  void operator()(const msg::SnapshotState& in) { wire::write(out.initSnapshotState(), in, blobs); }
  void operator()(const msg::WorkerReport& in) { wire::write(out.initWorkerReport(), in); }
  void operator()(const msg::ShardReport& in) { wire::write(out.initShardReport(), in); }
  void operator()(const msg::SchedulerReport& in) { wire::write(out.initSchedulerReport(), in); }
  void operator()(const msg::Evicted& in) { wire::write(out.initEvicted(), in); }
  void operator()(const msg::RunEnded& in) { wire::write(out.initRunEnded(), in); }
  void operator()(const msg::Evaluated& in) { wire::write(out.initEvaluated(), in); }
  void operator()(const msg::Interrupt&) { out.initInterrupt(); }
  void operator()(const msg::Bound& in) { wire::write(out.initBound(), in); }
  void operator()(const msg::PushDropped& in) { wire::write(out.initPushDropped(), in); }
  void operator()(const msg::RoundClosed& in) { wire::write(out.initRoundClosed(), in); }
  void operator()(const msg::CloseRound& in) { wire::write(out.initCloseRound(), in); }
  void operator()(const msg::Leave& in) { wire::write(out.initLeave(), in); }
  void operator()(const msg::MiniBatch& in) { wire::write(out.initMiniBatch(), in); }
  void operator()(const msg::NoMore& in) { wire::write(out.initNoMore(), in); }
  void operator()(const msg::Activation& in) { wire::write(out.initActivation(), in, blobs); }
  void operator()(const msg::OutputGradient& in) {
    wire::write(out.initOutputGradient(), in, blobs);
  }
  void operator()(const msg::GivenUp& in) { wire::write(out.initGivenUp(), in); }
};

Body read_body(BodyReader in, wire::ConstBlobs blobs) {
  switch (in.which()) {
    case schema::Envelope::Body::NONE:
      break;
    case schema::Envelope::Body::PULL:
      return wire::read(in.getPull());
    case schema::Envelope::Body::WEIGHTS:
      return wire::read(in.getWeights(), blobs);
    case schema::Envelope::Body::PUSH:
      return wire::read(in.getPush(), blobs);
    case schema::Envelope::Body::PUSHED:
      return wire::read(in.getPushed());
    case schema::Envelope::Body::REFUSED:
      return wire::read(in.getRefused());
    case schema::Envelope::Body::JOIN:
      return msg::Join{};
    case schema::Envelope::Body::START:
      return wire::read(in.getStart());
    case schema::Envelope::Body::WANT_LEASE:
      return wire::read(in.getWantLease());
    case schema::Envelope::Body::LEASE:
      return wire::read(in.getLease());
    case schema::Envelope::Body::NO_DATA:
      return wire::read(in.getNoData());
    case schema::Envelope::Body::IDLE:
      return wire::read(in.getIdle());
    case schema::Envelope::Body::DIVERGED:
      return wire::read(in.getDiverged());
    case schema::Envelope::Body::STOP:
      return msg::Stop{};
    case schema::Envelope::Body::STOPPED:
      return wire::read(in.getStopped());
    case schema::Envelope::Body::ADMIT:
      return wire::read(in.getAdmit());
    case schema::Envelope::Body::ADMITTED:
      return wire::read(in.getAdmitted());
    case schema::Envelope::Body::RAISE:
      return wire::read(in.getRaise());
    case schema::Envelope::Body::FENCE:
      return wire::read(in.getFence());
    case schema::Envelope::Body::FENCED:
      return wire::read(in.getFenced());
    case schema::Envelope::Body::REMOVE:
      return wire::read(in.getRemove());
    case schema::Envelope::Body::SNAPSHOT:
      return wire::read(in.getSnapshot());
    case schema::Envelope::Body::SNAPSHOT_VOTE:
      return wire::read(in.getSnapshotVote());
    case schema::Envelope::Body::FINISH:
      return msg::Finish{};
    case schema::Envelope::Body::SNAPSHOT_STATE:
      return wire::read(in.getSnapshotState(), blobs);
    case schema::Envelope::Body::WORKER_REPORT:
      return wire::read(in.getWorkerReport());
    case schema::Envelope::Body::SHARD_REPORT:
      return wire::read(in.getShardReport());
    case schema::Envelope::Body::SCHEDULER_REPORT:
      return wire::read(in.getSchedulerReport());
    case schema::Envelope::Body::EVICTED:
      return wire::read(in.getEvicted());
    case schema::Envelope::Body::RUN_ENDED:
      return wire::read(in.getRunEnded());
    case schema::Envelope::Body::EVALUATED:
      return wire::read(in.getEvaluated());
    case schema::Envelope::Body::INTERRUPT:
      return msg::Interrupt{};
    case schema::Envelope::Body::BOUND:
      return wire::read(in.getBound());
    case schema::Envelope::Body::PUSH_DROPPED:
      return wire::read(in.getPushDropped());
    case schema::Envelope::Body::ROUND_CLOSED:
      return wire::read(in.getRoundClosed());
    case schema::Envelope::Body::CLOSE_ROUND:
      return wire::read(in.getCloseRound());
    case schema::Envelope::Body::LEAVE:
      return wire::read(in.getLeave());
    case schema::Envelope::Body::MINI_BATCH:
      return wire::read(in.getMiniBatch());
    case schema::Envelope::Body::NO_MORE:
      return wire::read(in.getNoMore());
    case schema::Envelope::Body::ACTIVATION:
      return wire::read(in.getActivation(), blobs);
    case schema::Envelope::Body::OUTPUT_GRADIENT:
      return wire::read(in.getOutputGradient(), blobs);
    case schema::Envelope::Body::GIVEN_UP:
      return wire::read(in.getGivenUp());
  }
  throw wire::Malformed{concat("body is of the unknown kind ", static_cast<unsigned>(in.which()))};
}

constexpr std::array<std::string_view, std::variant_size_v<Body>> kNames = {"pull",
                                                                            "weights",
                                                                            "push",
                                                                            "pushed",
                                                                            "refused",
                                                                            "join",
                                                                            "start",
                                                                            "want lease",
                                                                            "lease",
                                                                            "no data",
                                                                            "idle",
                                                                            "diverged",
                                                                            "stop",
                                                                            "stopped",
                                                                            "admit",
                                                                            "admitted",
                                                                            "raise",
                                                                            "fence",
                                                                            "fenced",
                                                                            "remove",
                                                                            "snapshot",
                                                                            "snapshot vote",
                                                                            "finish",
                                                                            "snapshot state",
                                                                            "worker report",
                                                                            "shard report",
                                                                            "scheduler report",
                                                                            "evicted",
                                                                            "run ended",
                                                                            "evaluated",
                                                                            "interrupt",
                                                                            "bound",
                                                                            "push dropped",
                                                                            "round closed",
                                                                            "close round",
                                                                            "leave",
                                                                            "mini-batch",
                                                                            "no more",
                                                                            "activation",
                                                                            "output gradient",
                                                                            "given up"};

}  // namespace

Message encode(const Envelope& envelope) {
  // Most headers fit in the stack segment, so that encoding one allocates only the message itself.
  std::array<capnp::word, 128> first_segment;
  std::memset(first_segment.data(), 0, sizeof first_segment);
  capnp::MallocMessageBuilder builder(kj::arrayPtr(first_segment.data(), first_segment.size()));
  auto root = builder.initRoot<schema::Envelope>();
  root.setProtocol(kProtocolVersion);
  root.setIncarnation(envelope.incarnation.value());
  root.setPlacement(envelope.placement);
  root.setShardIncarnation(envelope.shard_incarnation.value());
  wire::Blobs blobs;
  std::visit(BodyWriter{root.getBody(), blobs}, envelope.body);
  return wire::sealed(builder, blobs);
}

Expected<Envelope> decode(const Message& message) {
  return wire::opened<schema::Envelope>(message, kNames, [&](schema::Envelope::Reader in) {
    Envelope envelope;
    envelope.incarnation = Incarnation(in.getIncarnation());
    envelope.placement = in.getPlacement();
    envelope.shard_incarnation = Incarnation(in.getShardIncarnation());
    envelope.body = read_body(in.getBody(), message.blobs());
    return envelope;
  });
}

std::string_view name_of(const Body& body) {
  return kNames[body.index()];
}

}  // namespace leeway
