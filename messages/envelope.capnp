@0x8d5a1f3e90c47b06;
# The header of every message between actors. Sender and receiver need the same protocol version.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway");
$Cpp.include("core/expected.hpp");
$Cpp.include("messages/message.hpp");
using import "/messages/generator/annotations.capnp".constant;
using import "/messages/generator/annotations.capnp".initially;
using import "/messages/generator/annotations.capnp".root;
using import "/messages/generator/annotations.capnp".type;
using Common = import "common.capnp";
using Data = import "worker_shard.capnp";
using Work = import "worker_scheduler.capnp";
using Control = import "scheduler_shard.capnp";
using Watch = import "monitor.capnp";
using Along = import "stage_stage.capnp";
using Between = import "shard_shard.capnp";
using Group = import "host_group.capnp";
using Replicas = import "replica.capnp";
using State = import "shard_state.capnp";

struct Envelope $root(decode = "decode") {
  protocol @0 :UInt16 $constant("kProtocolVersion");
  session @1 :UInt64 $type(Common.session) $initially("1");
  # Of the worker that sends or receives the message.
  placement @2 :UInt32 $initially("1");  # number of the sender's block placement
  shardSession @3 :UInt64 $type(Common.session) $initially("1");
  # Of the shard that sends or receives the message.
  sequence @51 :UInt64;  # number of the message in a channel of two roles; 0: outside of it
  acknowledged @52 :UInt64;  # the sender has received all of the channel up to this sequence
  body :union $type(name = "Body") {
    none @4 :Void;
    pull @5 :Data.Pull;
    weights @6 :Data.Weights;
    push @7 :Data.Push;
    pushed @8 :Data.Pushed;
    refused @9 :Data.Refused;
    join @10 :Work.Join;
    start @11 :Work.Start;
    wantLease @12 :Work.WantLease;
    lease @13 :Work.Lease;
    noData @14 :Work.NoData;
    idle @15 :Work.Idle;
    diverged @16 :Work.Diverged;
    stop @17 :Work.Stop;
    stopped @18 :Work.Stopped;
    admit @19 :Control.Admit;
    admitted @20 :Control.Admitted;
    raise @21 :Control.Raise;
    fence @22 :Control.Fence;
    fenced @23 :Control.Fenced;
    remove @24 :Control.Remove;
    snapshot @25 :Control.Snapshot;
    snapshotVote @26 :Control.SnapshotVote;
    finish @27 :Control.Finish;
    snapshotState @28 :Control.SnapshotState;
    workerReport @29 :Watch.WorkerReport;
    shardReport @30 :Watch.ShardReport;
    schedulerReport @31 :Watch.SchedulerReport;
    evicted @32 :Watch.Evicted;
    runEnded @33 :Watch.RunEnded;
    evaluated @34 :Watch.Evaluated;
    interrupt @35 :Watch.Interrupt;
    bound @36 :Control.Bound;
    pushDropped @37 :Work.PushDropped;
    roundClosed @38 :Control.RoundClosed;
    closeRound @39 :Control.CloseRound;
    leave @40 :Work.Leave;
    miniBatch @41 :Along.MiniBatch;
    noMore @42 :Along.NoMore;
    activation @43 :Along.Activation;
    outputGradient @44 :Along.OutputGradient;
    givenUp @45 :Along.GivenUp;
    snapshotTaken @46 :Control.SnapshotTaken;
    stored @47 :Control.Stored;
    checkpointed @48 :Watch.Checkpointed;
    roundNorm @49 :Between.RoundNorm;
    gradientNorm @50 :Along.GradientNorm;
    received @53 :Control.Received;
    relay @54 :Replicas.Relay;
    relayed @55 :Replicas.Relayed;
    replicate @56 :Replicas.Replicate;
    replicating @57 :Replicas.Replicating;
    replicasChanged @58 :Watch.ReplicasChanged;
    seed @59 :Replicas.Seed;
    standbyReady @60 :Replicas.StandbyReady;
    shardState @61 :State.ShardState;
    outdated @62 :Data.Outdated;
    boundMoved @63 :Watch.BoundMoved;
    endGrace @64 :Control.EndGrace;
    seedSent @65 :Replicas.SeedSent;
    seedMissing @66 :Replicas.SeedMissing;
    groupShare @67 :Group.GroupShare;
    groupGradient @68 :Group.GroupGradient;
    groupDiverged @69 :Group.GroupDiverged;
    groupEnd @70 :Group.GroupEnd;
  }
}
