@0xc1f04e7d95ab3820;
# The state of a shard between two inputs, for a new standby. The shard has no update under way, no
# answer to a pull, and no proposed snapshot.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::msg");
$Cpp.include("messages/message.hpp");
using import "/messages/generator/annotations.capnp".ascending;
using import "/messages/generator/annotations.capnp".checked;
using import "/messages/generator/annotations.capnp".count;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".method;
using import "/messages/generator/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".type;
using Common = import "common.capnp";
using Path = import "worker_shard.capnp";
using Watch = import "monitor.capnp";

struct ShardState {
  # Carried by a Seed.
  clocks @0 :ClockTableState;
  bounds @1 :BoundTableState;
  pulls @2 :PullGateState;
  tied @3 :List(Contribution) $limit("kMaxHeldPushes");  # gradients that wait for those of siblings
  rounds @4 :RoundState;
  expected @5 :List(ExpectedPush) $limit("kMaxHeldPushes");  # accepted and not acknowledged
  norms @6 :RoundNormsState;
  scheduler @7 :ChannelState;
  monitor @8 :ChannelState;
  report @9 :Watch.ShardReport;
  reportedEvents @10 :UInt64;
  malformed @11 :UInt64;
  blocks @12 :List(StoredBlock) $limit("kMaxBlocks");
  openPulls @13 :OpenPullsState;
  residuals @14 :List(Residual) $limit("kMaxHeldPushes");
  lossScale @15 :LossScaleState;

  struct Residual {
    # The encoding of the worker's last push of this bucket has left a residual.
    worker @0 :UInt32 $type(Common.worker);
    bucket @1 :UInt32 $range(below = "kMaxBuckets");
  }
}

struct ClockTableState {
  view @0 :UInt64 $type(Common.view);
  minClock @1 :Int64 $type(Common.clock);
  maxClock @2 :Int64 $type(Common.clock);
  maxClockGap @3 :Int64 $count;
  participants @4 :List(Participant) $limit("kMaxWorkers");

  struct Participant {
    worker @0 :UInt32 $type(Common.worker);
    session @1 :UInt64 $type(Common.session);
    live @2 :Bool;
    fenced @3 :Bool;
    clock @4 :Int64 $type(Common.clock);
    buckets @5 :UInt32 $range(least = "0", most = "kMaxBuckets");
    # Of the iteration; 0: none has been pushed.
    accepted @6 :List(UInt32) $range(below = "kMaxBuckets") $limit("kMaxBuckets");
    nextUnseen @7 :Int64 $type(Common.iteration);
    contributed @8 :List(Int64) $type(Common.iteration) $limit("kKeptContributions");
  }
}

struct BoundTableState {
  entries @0 :List(Entry) $limit("kMaxBounds");
  unanswered @1 :Int64 $type(Common.iteration);

  struct Entry {
    from @0 :Int64 $type(Common.iteration);
    bound @1 :Int64;
  }
}

struct PullGateState {
  parked @0 :List(Parked) $limit("kMaxParkedPulls");  # in order of arrival
  sweptAt @1 :Int64 $type(Common.clock);

  struct Parked {
    worker @0 :UInt32 $type(Common.worker);
    pull @1 :Path.Pull;
    since @2 :Int64 $count;  # ns
  }
}

struct OpenPullsState {
  # Under delay_threshold, at shard 0.
  progress @0 :Float64;
  pulls @1 :List(Open) $limit("kMaxParkedPulls");

  struct Open {
    worker @0 :UInt32 $type(Common.worker);
    iteration @1 :Int64 $type(Common.iteration);
    progress @2 :Float64;  # when the pull was answered
    reported @3 :Bool;  # as outdated
  }
}

struct LossScaleState {
  progress @0 :Float64;  # rounds
  steps @1 :List(Step) $limit("kMaxBounds");
  pending @2 :List(Pending) $limit("kMaxHeldPushes");
  counted @3 :List(Counted) $limit("kMaxWorkers");

  struct Step {
    since @0 :Int64 $type(Common.iteration);
    scale @1 :Float32 = 1 $range(least = "1", most = "kMostLossScale");
    skipped @2 :UInt64;  # updates until then
  }
  struct Pending {
    round @0 :Int64 $type(Common.iteration);
    scale @1 :Float32 $range(least = "0", most = "kMostLossScale");
  }
  struct Counted {
    worker @0 :UInt32 $type(Common.worker);
    iteration @1 :Int64 $type(Common.iteration);
  }
}

struct Contribution $method("bool is_empty() const { return blocks.empty(); }") {
  # One worker's push of one bucket, on its way into the weights.
  worker @0 :UInt32 $type(Common.worker);
  session @1 :UInt64 $type(Common.session);
  iteration @2 :Int64 $type(Common.iteration);
  bucket @3 :UInt32;  # index among the worker's buckets at this shard
  shardBucket @4 :UInt32;  # index among the shard's buckets
  weight @5 :Float64;  # samples / samples of one round
  samples @6 :UInt32;
  scale @7 :Float32 = 1;  # factor of its gradients
  firstOwner @8 :Bool = true;
  # The samples of tied gradients count once: with the gradient of the first owner.
  owners @9 :UInt32 = 1;  # stages of a pipeline that push these blocks
  blocks @10 :List(Common.BlockRef) $limit("kMaxBlocks");
  # As in the bucket; none for an empty push.
  assigned @11 :List(UInt32) $limit("kMaxBlockSlices") $ascending;  # as in the push
  overflowed @12 :Bool;  # it is a Push of kind overflow
  lossScale @13 :Float32 $range(least = "0", most = "kMostLossScale");  # as in the push
}

struct RoundState {
  # Pushes that wait for their round, and the state of the open round under backup and quorum.
  held @0 :List(Contribution) $limit("kMaxHeldPushes");  # by round, in order of arrival
  whole @1 :List(Whole) $limit("kMaxWorkers");  # in order of arrival
  closing @2 :Closing;
  proposed @3 :Proposal;
  gathering @4 :Gathering;

  struct Whole {
    worker @0 :UInt32 $type(Common.worker);
    empty @1 :Bool;
  }
  struct Closing {
    closed @0 :Bool;  # whether a round is closed, and waits for pushes
    round @1 :Int64 $type(Common.iteration);
    contributors @2 :List(UInt32) $type(Common.worker) $limit("kMaxWorkers");
    missing @3 :List(UInt32) $type(Common.worker) $limit("kMaxWorkers");
    scale @4 :Float64 = 1 $range(least = "0", most = "kMaxWorkers");  # see CloseRound
  }
  struct Proposal {
    beyond @0 :Int64 $type(Common.iteration);  # the proposed round plus one; 0: none
    view @1 :UInt64 $type(Common.view);
    contributors @2 :UInt32;
  }
  struct Gathering {
    # The state of grace windows. Times are those of the shard.
    opened @0 :Int64;  # when the open round began; negative: not known
    gathered @1 :Int64 $type(Common.iteration);  # the latest round with a quorum plus one; 0: none
    quorumAt @2 :Int64;  # when the round got its quorum
    timer @3 :Int64;  # when the earliest timer fires; negative: none runs
    arrivals @4 :List(Int64) $limit("kMaxGraceArrivals");  # GraceWindow::arrivals(), in nanoseconds
    graceEnded @5 :Bool;  # see EndGrace
  }
}

struct ExpectedPush {
  worker @0 :UInt32 $type(Common.worker);
  session @1 :UInt64 $type(Common.session);
  iteration @2 :Int64 $type(Common.iteration);
  bucket @3 :UInt32;
}

struct NormPart {
  # A shard's part of the norm of a round.
  shard @0 :UInt32 $type(Common.shard);
  squares @1 :Float64;
}

struct RoundNormsState {
  passed @0 :Int64 $type(Common.iteration);
  discarded @1 :Int64 $type(Common.iteration);
  needed @2 :List(Int64) $type(Common.iteration) $limit("kMaxShards");  # by shard
  rounds @3 :List(Round) $limit("kMaxKeptRounds");

  struct Round {
    round @0 :Int64 $type(Common.iteration);
    closed @1 :Bool;
    parts @2 :List(NormPart) $limit("kMaxShards");
  }
}

struct ChannelState {
  sent @0 :UInt64;
  received @1 :UInt64;
  owes @2 :Bool;
  kept @3 :List(Kept) $limit("kMaxKeptMessages");

  struct Kept {
    number @0 :UInt64;
    message @1 :Data $type(name = "Message");  # without blobs
  }
}

struct StoredBlock $checked {
  weights @0 :Common.BlockRef;
  slots @1 :List(Common.TensorRef) $limit("kMaxSlots");  # state of the optimizer
  progress @2 :Float64;  # sum of the weights of the pushes applied
  samples @3 :Int64 $count;  # trained on so far
  pulled @4 :List(PulledVersion) $limit("kMaxHeldPushes");
}

struct PulledVersion {
  # A version of a block that a worker has pulled and not pushed a gradient of yet.
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);  # of the pull
  progress @2 :Float64;  # of the block at the pull
  weights @3 :Common.BlockRef;  # data: only with the first pull of a version, if they are kept
}
