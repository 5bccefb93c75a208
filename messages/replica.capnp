@0x9b3de1a64f7c5012;
# Replication of a role: the primary relays its inputs to a standby, and the scheduler decides which
# actors are replicas. Designs of this kind are known as state machine replication; the primary's
# outputs wait for the standby's acknowledgements ("output commit").

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::msg");
$Cpp.include("core/address.hpp");
$Cpp.include("messages/message.hpp");
using import "/messages/generator/annotations.capnp".blobs;
using import "/messages/generator/annotations.capnp".count;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".type;
using Common = import "common.capnp";

struct StartInput {
  # on_start().
}

struct MessageInput {
  # on_message(). The blobs of the Relay are the message's.
  from @0 :Common.Actor;
  message @1 :Data $type(name = "Message");
}

struct TimerInput {
  # on_timer().
  token @0 :UInt64;
}

struct PartInput {
  # on_part().
  work @0 :UInt64;  # its number among the works of the role, from 1
  part @1 :UInt32;
  outcome @2 :Data $type(name = "Message");  # of work that only the primary runs; else empty
}

struct EndInput {
  # on_down().
  actor @0 :Common.Actor;
  kind @1 :UInt8;  # EndReason::Kind
  text @2 :Text;
}

struct LinkInput {
  # on_link().
  peer @0 :Common.Actor;
}

struct Relay $blobs(all = "blobs") {
  # primary -> standby. An input of the role. Answered with Relayed.
  configuration @0 :UInt64;
  position @1 :UInt64;  # of the input, from 1 in a run
  now @2 :Int64 $count;  # time of the input in ns; the role's now()
  recorded @3 :UInt64;  # number of the role's records that the primary has reported
  digest @4 :UInt64;  # of the role's outputs before this input
  input :union $type(name = "msg::Input") {
    start @5 :StartInput;
    message @6 :MessageInput;
    timer @7 :TimerInput;
    part @8 :PartInput;
    end @9 :EndInput;
    link @10 :LinkInput;
  }
}

struct Relayed {
  # standby -> primary. The standby has all inputs up to this position.
  configuration @0 :UInt64;
  position @1 :UInt64;
}

struct Seed $blobs(all = "blobs") {
  # primary -> new standby. The state of the role after the input at `position`; relays of later
  # inputs follow. The blobs are those of `state`. Answered with Relayed.
  configuration @0 :UInt64;
  position @1 :UInt64;
  recorded @2 :UInt64;  # as in a Relay
  digest @3 :UInt64;
  works @4 :UInt64;  # number of the role's works so far; none is under way
  timers @5 :List(Timer) $limit("kMaxTimers");  # that have not rung
  watched @6 :List(Common.Actor) $limit("kMaxActors");
  state @7 :Data $type(name = "Message");
  now @8 :Int64 $count;  # the role's time, in ns
  launch @9 :UInt32;  # of the standby; a later one has its own seed

  struct Timer {
    token @0 :UInt64;
    delayNs @1 :Int64 $type(Common.duration);  # until it is due, from `now`
  }
}

struct SeedSent {
  # primary -> new standby. The primary sends it after a Seed, each time the scheduler repeats its
  # order. A standby without that seed answers with SeedMissing.
  configuration @0 :UInt64;
  launch @1 :UInt32;  # of the standby
  sending @2 :UInt64;  # counts the sendings of this seed, from 1
}

struct SeedMissing {
  # new standby -> primary. The seed is lost. The primary sends it again, and all later relays.
  configuration @0 :UInt64;
  sending @1 :UInt64;
}

struct StandbyReady {
  # standby -> scheduler. It has no state, and can become the standby. Repeated until it gets a
  # Seed.
  launch @0 :UInt32;  # counts the starts of standbys of the shard
}

struct Replicate {
  # scheduler -> primary or standby. The replicas from now on. Answered with Replicating.
  configuration @0 :UInt64;  # counts the orders for this role, from 2
  standing @1 :Standing;
  launch @2 :UInt32;  # of the standby that the primary seeds

  enum Standing {
    alone @0;     # the primary has lost its standby
    promoted @1;  # the standby takes over, alone
    seeding @2;   # the primary gets a new standby, and answers when that has the state
  }
}

struct Replicating {
  # primary -> scheduler. It has carried out the order.
  configuration @0 :UInt64;
}
