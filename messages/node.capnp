@0xd4a87b0c5e1f9207;
# The conversation of a program with the node agents that host actors for it, and of agents with each other. It is spoken
# from host to host, beside the messages of the actors.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::node_schema");

struct NodeEnvelope {
  protocol @0 :UInt16;          # as in Envelope
  job @1 :UInt64;               # drawn by the program; 0 where no job is meant
  body :union {
    none @2 :Void;
    ask @3 :Ask;
    answer @4 :Answer;
    chunk @5 :Chunk;
    stored @6 :Stored;
    start @7 :Void;             # program -> agent. All have answered well: make the connections. Answered with Linked or Refused.
    here @8 :Here;
    linked @9 :Void;            # agent -> program. All connections of this node stand.
    refused @10 :Refused;
    begin @11 :Void;            # program -> agent. All are linked: the actors may begin.
    ended @12 :Ended;
    moved @13 :Moved;
    leaving @14 :Void;          # agent -> program. This node wants to go: its workers are to stop. Answered with Left.
    left @15 :Void;             # program -> agent. All workers there have stopped, and the run goes on without them.
    end @16 :End;
    done @17 :Void;             # agent -> program. The job is over here, and the agent free.
    offer @18 :Offer;
    statusRequest @19 :Void;    # anybody -> program or agent. Answered with Status.
    status @20 :Status;
    ping @21 :Ping;
    pong @22 :Pong;
    events @23 :Events;
  }
}

struct Actor {
  kind @0 :UInt8;               # RoleKind
  index @1 :UInt32;
}

struct Ask {
  # program -> agent. Could you host this part of this job? An agent that is free keeps itself free for it until End.
  version @0 :Text;             # of the program's Leeway
  who @1 :Text;                 # for people: "fashion-mlp (process 4711 on host a)"
  plan @2 :Data;                # a Plan of plan.capnp, as a message of its own
  self @3 :UInt32;              # the agent's number
  nodes @4 :List(Text);         # where each listens, by number; the program is 0; empty: gone
  shards @5 :List(UInt32);      # number of the node of each
  workers @6 :List(UInt32);     # 0xffffffff: on none yet
  data @7 :DataMark;
  trace @8 :Bool;               # events are wanted
}

struct DataMark {
  # What two data sets have in common that are the same.
  trainSamples @0 :Int64;
  testSamples @1 :Int64;
  shape @2 :List(Int64);
  classes @3 :UInt32;
  targets @4 :Int64;
  background @5 :Float32;
  checksum @6 :UInt64;          # over samples from begin to end
  labels @7 :UInt32 = 1;        # of a sample, where there are classes
}

struct Answer {
  # agent -> program.
  version @0 :Text;
  cores @1 :UInt32;
  memoryBytes @2 :UInt64;
  gpus @3 :UInt32;
  busy @4 :Text;                # with whose job, since when; empty: free
  problems @5 :List(Text);      # why it cannot; each ends in what to do
  wantsData @6 :Bool;           # has not the data, or other data
}

struct Chunk {
  # program -> agent. Samples from `first` on: blob 0 holds their x (float), blob 1 labels (int32) or targets (float).
  test @0 :Bool;
  first @1 :Int64;
  samples @2 :UInt32;
}

struct Stored {
  # agent -> program. So many samples have arrived, of both sets together.
  samples @0 :Int64;
}

struct Here {
  # agent -> agent. Tells who called; the one who is called answers with the same.
  node @0 :UInt32;
  name @1 :Text;                # where it listens
}

struct Refused {
  text @0 :Text;
}

struct Ended {
  # any node -> all others. An actor here has ended.
  actor @0 :Actor;
  life @1 :UInt32;
  reason @2 :Text;
}

struct Moved {
  # program -> all agents. The worker's next life is on that node.
  worker @0 :UInt32;
  node @1 :UInt32;
  life @2 :UInt32;
}

struct End {
  # program -> agent. The job is over, or will not begin. Answered with Done.
  text @0 :Text;
}

struct Offer {
  # agent -> program. Could take workers that are missing. Answered with Ask, or Refused.
  name @0 :Text;                # where it listens
}

struct Ping {
  ns @0 :Int64;                 # clock of the sender
}
struct Pong {
  ns @0 :Int64;                 # of the Ping
  clockNs @1 :Int64;            # clock of the one who answers
}

struct Events {
  # agent -> program. What happened at this node, in its own time (that of Pong).
  events @0 :List(Event);

  struct Event {
    ns @0 :Int64;
    actor @1 :Actor;
    kind @2 :UInt8;
    worker @3 :UInt32;
    iteration @4 :Int64;
    value @5 :Int64;
    value2 @6 :Int64;
    epoch @7 :Int64;
    incarnation @8 :UInt32;
    name @9 :Text;
    chunk @10 :UInt32;
  }
}

struct Status {
  # What one process knows of its part.
  version @0 :Text;
  program @1 :Bool;             # else an agent
  name @2 :Text;                # where it listens
  node @3 :UInt32;              # in the job
  job @4 :Text;                 # empty: none
  seconds @5 :Float64;          # since the job began
  nodes @6 :List(Text);         # where all of the job listen
  actors @7 :List(Actor);       # here
  clocks @8 :List(WorkerClock); # as the shards here see them
  parked @9 :List(Parked);
  links @10 :List(Link);
  stages @11 :UInt32;           # of each pipeline; 1: workers train the whole model
  did @12 :List(Operation);     # the last, of the stages here

  struct WorkerClock {
    worker @0 :UInt32;
    clock @1 :Int64;
  }
  struct Operation {
    worker @0 :UInt32;
    kind @1 :UInt8;             # as of an event
    iteration @2 :Int64;
    microBatch @3 :Int64;
  }
  struct Parked {
    shard @0 :UInt32;
    worker @1 :UInt32;
    iteration @2 :Int64;
    behind @3 :List(UInt32);    # the slowest workers
  }
  struct Link {
    node @0 :UInt32;
    state @1 :Text;             # up, silent or gone
    sharedMemory @2 :Bool;
    messagesOut @3 :UInt64;
    messagesIn @4 :UInt64;
    bytesOut @5 :UInt64;
    bytesIn @6 :UInt64;
    waiting @7 :UInt64;
  }
}
