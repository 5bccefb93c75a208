@0xd4a87b0c5e1f9207;
# Messages between a program and the node agents that host its actors, and among the agents. Hosts
# send them in addition to the messages of their actors.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::node_schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::node");
$Cpp.include("core/address.hpp");
$Cpp.include("core/expected.hpp");
$Cpp.include("core/time.hpp");
$Cpp.include("messages/message.hpp");
using import "/messages/generator/annotations.capnp".blobs;
using import "/messages/generator/annotations.capnp".checked;
using import "/messages/generator/annotations.capnp".constant;
using import "/messages/generator/annotations.capnp".count;
using import "/messages/generator/annotations.capnp".finite;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".root;
using import "/messages/generator/annotations.capnp".type;
using Common = import "common.capnp";
using Record = import "events.capnp";

struct NodeEnvelope $Cpp.namespace("leeway") $root(decode = "decode_node") {
  protocol @0 :UInt16 $constant("kProtocolVersion");
  job @1 :UInt64;  # drawn by the program; 0 in messages without a job
  body :union $type(name = "node::Body") {
    none @2 :Void;
    ask @3 :Ask;
    answer @4 :Answer;
    piece @5 :DataPiece;
    stored @6 :Stored;
    start @7 :Start;
    here @8 :Here;
    linked @9 :Void;
    # agent -> program. All connections of this node are established.
    refused @10 :Refused;
    begin @11 :Void;
    # program -> agent. All nodes are linked: the actors may begin.
    ended @12 :Ended;
    moved @13 :Moved;
    leaving @14 :Void;
    # agent -> program. This node leaves: its workers are to stop. Answered with Left.
    left @15 :Void;
    # program -> agent. All workers of the node have stopped, and the run continues without them.
    end @16 :End;
    done @17 :Void;
    # agent -> program. The job has ended at this node, and the agent is free.
    offer @18 :Offer;
    statusRequest @19 :Void;  # any process -> program or agent. Answered with Status.
    status @20 :Status;
    ping @21 :Ping;
    pong @22 :Pong;
    events @23 :Events;
    fileRequest @24 :FileRequest;
    fileAnswer @25 :FileAnswer;
    messages @26 :Messages;
    effects @27 :Effects;
    held @28 :Held;
    launch @29 :Launch;
    endLaunch @30 :EndLaunch;
    returned @31 :Returned;
    linkState @32 :LinkState;
    relink @33 :Relink;
    machineRequest @34 :Void;  # any process -> agent. Answered with Machine.
    machine @35 :Machine;
    measure @36 :Measure;
    measured @37 :Measured;
    load @38 :Load;
    loaded @39 :Loaded;
    declare @40 :Declare;
    pageRequest @41 :PageRequest;
    pageState @42 :PageState;
    loadingData @43 :Void;  # agent -> program, repeated. The node loads the data before its Answer.
    traceTaken @44 :TraceTaken;
  }
}

struct Ask $checked $blobs(all = "initial_weights") {
  # program -> agent. Can the agent host its part of this job? A free agent reserves itself for the
  # job until End. The blobs are the initial weights by parameter; without blobs, workers draw them
  # from the seed.
  version @0 :Text;  # of the program's Leeway
  who @1 :Text;  # the program, for logs: "fashion-mlp (process 4711 on host a)"
  plan @2 :Data $type(name = "Message");  # a Plan
  self @3 :UInt32;  # the agent's number
  nodes @4 :List(Text) $limit("kMaxNodes");
  # Address of each node, by number; the program is number 0; empty: the node is gone.
  shards @5 :List(UInt32) $limit("kMaxShards");  # number of each shard's node
  workers @6 :List(UInt32) $limit("kMaxWorkers");  # node of each worker; 0xffffffff: none yet
  standbys @12 :List(UInt32) $limit("kMaxShards");
  # Node of each shard's standby, likewise; empty: the job has none.
  data @7 :DataMark;
  trace @8 :Bool;  # the program wants events
  checkpoints @9 :Checkpoints;
  resumed @10 :Resumed;
  traceMessages @11 :Bool;  # the program wants messages
  userLoops @13 :Bool;  # each worker computes in a loop of its own process; see Declare

  struct Checkpoints {
    # Where the shards write.
    folder @0 :Text;  # of the program; empty: no checkpoints
    run @1 :Text;  # owner of the folder
    writer @2 :Text;  # name of this start of the run; a node with its mark shares the folder
    copies @3 :Bool;  # a node that does not share the folder keeps a copy under the same path
  }
  struct Resumed {
    # The checkpoint from which the job continues.
    folder @0 :Text;  # of all checkpoints; empty: the job begins
    number @1 :UInt64;
    manifest @2 :Text;  # its JSON, for nodes that do not see the folder
  }
}

struct DataMark $checked {
  # Equal data sets have equal marks.
  trainSamples @0 :Int64 $count;
  testSamples @1 :Int64 $count;
  shape @2 :List(Int64) $type(Common.shape) $range(least = "1") $limit("kMaxRank");
  classes @3 :UInt32;
  targets @4 :Int64 $count;
  background @5 :Float32 $finite;
  checksum @6 :UInt64;  # over samples from begin to end
  labels @7 :UInt32 = 1 $type(name = "std::int64_t") $range(least = "1", most = "0xffffffff");
  # Labels per sample, for data with classes.
}

struct Answer {
  # agent -> program.
  version @0 :Text;
  cores @1 :UInt32;
  memoryBytes @2 :UInt64;
  gpus @3 :UInt32;
  busy @4 :Text;  # the present job and its start; empty: free
  problems @5 :List(Text) $limit("kMaxProblems");  # reasons for a refusal, each with its remedy
  wantsData @6 :Bool;  # its data is missing or differs
  checkpoints @7 :Checkpoints;

  enum Checkpoints {
    # Where the shards of this node write.
    none @0;
    shared @1;  # into the program's folder, which this node sees
    sent @2;  # to the program
    copied @3;  # to the program, and into a folder of this node, which gets the manifests too
    joint @4;  # likewise, into the folder of another node that gets the manifests
  }
  nextCheckpoint @8 :UInt64;  # above the numbers of all checkpoints in the folder of this node
  arithmetic @9 :Text;
  # Names the arithmetic of shards on this node. The replicas of a shard need the same one.
}

struct DataPiece $blobs(each = ["x", "y"]) {
  # program -> agent. Samples from `first` on. Blob 0 holds their x (float), blob 1 their labels
  # (int32) or targets (float).
  test @0 :Bool;
  first @1 :Int64 $count;
  samples @2 :UInt32;
}

struct Stored {
  # agent -> program.
  samples @0 :Int64 $count;  # samples received so far, of both sets together
}

struct FileRequest $blobs(each = ["content"]) {
  # Any node -> any other. An operation on a file of the receiver, in the folder of the checkpoints.
  # Requests of one node are executed in order. Answered with FileAnswer.
  number @0 :UInt64;  # unique among the requests of a node
  operation @1 :Operation;
  path @2 :Text;  # of the file or folder, for all but append, flush and close
  to @3 :Text;  # the new path, for rename
  file @4 :UInt64;  # number of the request that created it, for append, flush and close
  offset @5 :UInt64;  # in bytes, for read; blob 0 is the bytes for append

  enum Operation {
    # As in core/files.hpp. Creating, appending, flushing and closing are for new files.
    create @0;
    append @1;
    flush @2;
    close @3;
    rename @4;
    makeFolder @5;
    flushFolder @6;
    remove @7;
    list @8;
    read @9;
  }
}

struct FileAnswer $blobs(each = ["content"]) {
  number @0 :UInt64;  # of the request
  error @1 :Text;  # empty: done
  names @2 :List(Text) $limit("kMaxFolderNames");  # for list
  bytes @3 :UInt64;  # of the whole file, for read; blob 0 is its bytes from the offset on
}

struct Start {
  # program -> agent. Connect to the nodes that have this order already. Answered with Linked or
  # Refused.
  nodes @0 :List(Text) $limit("kMaxNodes");  # their addresses, by number; empty: do not
}

struct Here {
  # agent -> agent. The caller's name. The called agent answers with its own.
  node @0 :UInt32 $range(below = "kMaxNodes");
  name @1 :Text;  # the address on which it listens
  hosted @2 :List(Hosted) $limit("kMaxActors");  # the actors on the sender

  struct Hosted {
    actor @0 :Common.Actor;
    launch @1 :UInt32;
  }
}

struct Launch {
  # program -> agent. The agent starts a worker or a standby, and sends Moved to all nodes.
  actor @0 :Common.Actor;
  launch @1 :UInt32;  # counts the starts of the actor, from 1
}

struct Returned {
  # agent -> program. A fault of the plan restarts a worker of the sender. Answered with Launch.
  worker @0 :UInt32 $type(Common.worker);
}

struct EndLaunch {
  # program -> agent. Unless the actor has been launched again, it ends.
  actor @0 :Common.Actor;
  launch @1 :UInt32;
  reason @2 :Text;
}

struct LinkState {
  # agent -> program. The sender's connection to another agent.
  node @0 :UInt32 $range(below = "kMaxNodes");
  state @1 :State;

  enum State {
    heard @0;  # again, or over a new connection
    silent @1;
    gone @2;  # and the messages in flight are lost
  }
}

struct Relink {
  # program -> agent. The connection to that agent is lost for good: make a new one.
  node @0 :UInt32 $range(below = "kMaxNodes");
}

struct Refused {
  text @0 :Text;
}

struct Ended {
  # Any node -> all others. An actor of the sender has ended.
  actor @0 :Common.Actor;
  launch @1 :UInt32;
  reason @2 :Text;
  kind @3 :Kind;

  enum Kind {
    # As EndReason::Kind, without `cut_off`, which only the coordinator reports.
    failed @0;
    plannedCrash @1;
    plannedEnd @2;
    unreachable @3;
  }
}

struct Moved {
  # Any node -> all others, before messages of the actor. It is launched on `node`, the sender. A
  # shard is launched when its standby takes over: by launch n of the standby, for the n+1st time.
  actor @0 :Common.Actor;
  node @1 :UInt32 $range(below = "kMaxNodes");
  launch @2 :UInt32;
}

struct End {
  # program -> agent. The job has ended, or will not begin. Answered with Done.
  text @0 :Text;
}

struct Effects {
  # agent -> program, before Done. What the hosts of this node have counted: the effects of the
  # plan's stragglers and faults, and what workers had not reported when they ended.
  stragglers @0 :List(Straggler) $limit("kMaxWorkers");
  fired @1 :List(UInt32) $limit("kMaxWorkers");  # numbers of the faults that have begun
  workers @2 :List(Unreported) $limit("kMaxWorkers");

  struct Straggler {
    number @0 :UInt32;  # in the plan
    addedNs @1 :Int64 $type(Common.duration);  # to computations
    iterations @2 :UInt64;  # that it slowed
  }
  struct Unreported {
    # As in WorkerReport.
    worker @0 :UInt32 $type(Common.worker);
    iterations @1 :UInt64;
    samples @2 :UInt64;
    computeNs @3 :Int64 $type(Common.duration);
    waitNs @4 :Int64 $type(Common.duration);
    waitBeforeNs @5 :Int64 $type(Common.duration);
    waitAfterNs @6 :Int64 $type(Common.duration);
    memoryBytes @7 :UInt64;
    outdated @8 :UInt64;
  }
}

struct Offer {
  # agent -> program. The agent can take missing workers. Held, Ask or Refused answer it.
  name @0 :Text;  # the address on which it listens
  waitNs @1 :Int64 $type(Common.duration);  # for a worker that is missing
}

struct Held {
  # program -> agent. The offer waits. The program answers it again later.
  text @0 :Text;  # what it waits for
}

struct Ping {
  ns @0 :Int64;  # the sender's clock
}
struct Pong {
  ns @0 :Int64;  # `ns` of the Ping
  clockNs @1 :Int64;  # the clock of the answering host
}

struct Machine {
  # agent -> any process. The machine of the agent, and its state.
  version @0 :Text;
  cores @1 :UInt32;
  memoryBytes @2 :UInt64;
  freeBytes @3 :UInt64;  # of the memory, for new processes
  gpus @4 :List(Text) $limit("kMaxGpus");  # their models
  job @5 :Text;  # that it hosts, and since when; empty: free
  wallNs @6 :Int64;  # its system clock, since 1970
  certificateUntil @7 :Text;  # its last day, "2029-02-24"; empty: no TLS
  warnings @8 :List(Text) $limit("kMaxProblems");  # about its certificate
}

struct Measure {
  # Any process -> agent. Call this node and measure the connection. Answered with Measured.
  name @0 :Text;  # HOST:PORT
}

struct Measured {
  name @0 :Text;  # as in Measure
  error @1 :Text;  # empty: it was measured
  roundTripNs @2 :Int64 $type(Common.duration);  # the smallest of several
  bytesPerSecond @3 :Float64 $finite;  # of large tensors
  sharedMemory @4 :Bool;
}

struct Declare $blobs(all = "values") {
  # worker process -> launcher. The loop of a worker has initialised its keys. The blobs are their
  # values, by parameter of the plan's model; only those of worker 0 are used. Answered with Refused
  # if the plan does not fit; otherwise the program of the job calls the process.
  worker @0 :UInt32 $type(Common.worker);
  name @1 :Text;  # the address on which the process listens
  plan @2 :Data $type(name = "Message");  # a Plan of the job, as this process wants it
}

struct PageRequest {
  # agent -> program. The node serves a page of the run. Answered with PageState.
  number @0 :UInt64;  # of the request, at this node
  since @1 :UInt64;  # revision of the state that the viewer has; 0: none
  stop @2 :Bool;  # the viewer stops the run
}

struct PageState $blobs(each = ["json"]) {
  # program -> agent. The state of the page, or its change since the viewer's revision.
  number @0 :UInt64;  # of the request
  revision @1 :UInt64;
  ended @2 :Bool;  # the run has
  problem @3 :Text;  # empty: none
}

struct Load $blobs(each = ["content"]) {
  # Any process -> agent. Bytes that measure a connection, and are dropped. Answered with Loaded.
  number @0 :UInt64;  # of the load, in a measurement
}

struct Loaded {
  number @0 :UInt64;  # as in Load
}

struct TraceTaken {
  count @0 :UInt64;  # program -> agent. Recorded events and messages of this node, in total.
}

struct Events {
  # agent -> program. Events of the actors of this node, in the node's own time (that of Pong).
  events @0 :List(Emitted) $limit("kMaxEventBatch");
  lost @1 :UInt64;  # that the node has dropped since the last batch: the program was too slow

  struct Emitted {
    ns @0 :Int64;
    actor @1 :Common.Actor;
    event @2 :Record.Event;
    record @3 :UInt64;  # number among the records of a replicated role; 0: not numbered
  }
}

struct Messages {
  # agent -> program. Messages that reached the actors of this node, in the node's own time.
  messages @0 :List(Received) $limit("kMaxEventBatch");
  lost @1 :UInt64;  # as in Events

  struct Received {
    ns @0 :Int64;
    from @1 :Common.Actor;
    to @2 :Common.Actor;
    header @3 :Data $type(name = "Message");  # without its tensors
    tensorBytes @4 :UInt64;
  }
}

struct Status {
  # The state of one process and of its part of a job.
  version @0 :Text;
  program @1 :Bool;  # otherwise an agent
  name @2 :Text;  # the address on which it listens
  node @3 :UInt32 $range(below = "kMaxNodes");  # its number in the job
  job @4 :Text;  # empty: none
  seconds @5 :Float64 $finite;  # since the job began
  nodes @6 :List(Text) $limit("kMaxNodes");  # addresses of all nodes of the job
  actors @7 :List(Common.Actor) $limit("kMaxActors");  # of this process
  clocks @8 :List(WorkerClock) $limit("kMaxWorkers");  # at the shards of this process
  parked @9 :List(Parked) $limit("kMaxWorkers");
  links @10 :List(Link) $limit("kMaxNodes");
  stages @11 :UInt32 $range(least = "1", most = "kMaxWorkers") $Cpp.initially("1");
  # Stages per pipeline; 1: workers train the whole model.
  did @12 :List(Operation) $limit("kMaxWorkers");  # last operation of each stage of this process
  checkpoint @13 :LastCheckpoint;  # at the program
  progress @14 :Progress;  # at the program
  replicas @15 :List(Replica) $limit("kMaxShards");  # the primaries of this process

  struct Progress {  # the latest figures of the job
    epoch @0 :Float64 $finite;  # computed samples / training samples
    epochs @1 :Float64 $finite;  # at which the job ends; 0: no limit
    iterations @2 :UInt64;  # of all workers together; 0: none is reported yet
    samples @3 :UInt64;  # computed
    samplesPerSecond @4 :Float64 $finite;
    trainLoss @5 :Float64;  # NaN: unknown
    testLoss @6 :Float64;  # of the last evaluation; NaN: none
    testAccuracy @7 :Float64;  # 0 to 1; NaN: none, or no classes
    bound @8 :Int64 = -1;  # staleness bound; -1: none
    workers @9 :UInt32;  # live ones
    pushBytes @10 :UInt64;  # of gradients in messages; `plain...`: the same without a codec
    plainPushBytes @11 :UInt64;
    pullBytes @12 :UInt64;  # of weights
    plainPullBytes @13 :UInt64;
    stageBytes @14 :UInt64;  # between the stages of pipelines
    plainStageBytes @15 :UInt64;
  }
  struct Replica {
    shard @0 :UInt32 $type(Common.shard);
    standby @1 :Standby;
    behind @2 :UInt64;  # inputs that the standby has yet to acknowledge

    enum Standby {
      none @0;     # the primary continues without one
      seeding @1;  # it does not have the state yet
      inSync @2;
    }
  }
  struct LastCheckpoint {
    number @0 :UInt64;  # 0: none since the start
    samples @1 :UInt64;  # trained in it
    seconds @2 :Float64 $finite;  # since it was written
  }
  struct WorkerClock {
    worker @0 :UInt32 $type(Common.worker);
    clock @1 :Int64;
  }
  struct Operation {
    worker @0 :UInt32 $type(Common.worker);
    operation @1 :Record.StageComputed.Operation;
    iteration @2 :Int64 $type(Common.iteration);
    microBatch @3 :UInt32;
  }
  struct Parked {
    shard @0 :UInt32 $type(Common.shard);
    worker @1 :UInt32 $type(Common.worker);
    iteration @2 :Int64;
    behind @3 :List(UInt32) $limit("kMaxWorkers");  # the slowest workers
  }
  struct Link {
    node @0 :UInt32 $range(below = "kMaxNodes");
    state @1 :Text;  # up, silent or gone
    sharedMemory @2 :Bool;
    messagesOut @3 :UInt64;
    messagesIn @4 :UInt64;
    bytesOut @5 :UInt64;
    bytesIn @6 :UInt64;
    waiting @7 :UInt64;
  }
}
