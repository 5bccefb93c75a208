#pragma once
// The conversation between the hosts of a cluster: values of node.capnp, which documents each
// message and field. `encode` and `decode_node` are the only way between them and the wire form.
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/address.hpp"
#include "core/expected.hpp"
#include "core/ids.hpp"
#include "core/time.hpp"
#include "messages/message.hpp"
#include "tensor/shape.hpp"

namespace leeway {

namespace node {

struct DataMark {
  std::int64_t train_samples = 0, test_samples = 0;
  Shape shape;
  std::uint32_t classes = 0;
  std::int64_t targets = 0;
  float background = 0;
  std::uint64_t checksum = 0;
  std::int64_t labels = 1;  // of a sample, where there are classes
  bool operator==(const DataMark&) const = default;
};

struct Ask {
  std::string version, who;
  Message plan;  // see encode(Plan)
  std::uint32_t self = 0;
  std::vector<std::string> nodes;
  std::vector<std::uint32_t> shards, workers;
  DataMark data;
  bool trace = false;
  std::vector<Blob> initial_weights;  // by parameter; empty: drawn from the seed
};
struct Answer {
  std::string version;
  std::uint32_t cores = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t gpus = 0;
  std::string busy;
  std::vector<std::string> problems;
  bool wants_data = false;
};
struct Chunk {
  bool test = false;
  std::int64_t first = 0;
  std::uint32_t samples = 0;
  Blob x, y;
};
struct Stored {
  std::int64_t samples = 0;
};
struct Start {};
struct Here {
  std::uint32_t node = 0;
  std::string name;
};
struct Linked {};
struct Refused {
  std::string text;
};
struct Begin {};
struct Ended {
  Address actor;
  std::uint32_t life = 0;
  std::string reason;
};
struct Moved {
  WorkerId worker;
  std::uint32_t node = 0;
  std::uint32_t life = 0;
};
struct Leaving {};
struct Left {};
struct End {
  std::string text;
};
struct Done {};
struct Offer {
  std::string name;
};
struct StatusRequest {};
struct Status {
  struct WorkerClock {
    WorkerId worker;
    std::int64_t clock = 0;
  };
  struct Operation {
    WorkerId worker;
    std::uint8_t kind = 0;
    std::int64_t iteration = 0, micro_batch = 0;
  };
  struct Parked {
    ShardId shard;
    WorkerId worker;
    std::int64_t iteration = 0;
    std::vector<std::uint32_t> behind;
  };
  struct Link {
    std::uint32_t node = 0;
    std::string state;
    bool shared_memory = false;
    std::uint64_t messages_out = 0, messages_in = 0, bytes_out = 0, bytes_in = 0, waiting = 0;
  };
  std::string version;
  bool program = false;
  std::string name;
  std::uint32_t node = 0;
  std::string job;
  double seconds = 0;
  std::vector<std::string> nodes;
  std::vector<Address> actors;
  std::vector<WorkerClock> clocks;
  std::vector<Parked> parked;
  std::vector<Link> links;
  std::uint32_t stages = 1;
  std::vector<Operation> did;
};
struct Ping {
  std::int64_t ns = 0;
};
struct Pong {
  std::int64_t ns = 0;
  std::int64_t clock_ns = 0;
};
struct Events {
  struct Event {
    std::int64_t ns = 0;
    Address actor;
    std::uint8_t kind = 0;
    WorkerId worker;
    std::int64_t iteration = 0, value = 0, value2 = 0, epoch = 0;
    std::uint32_t incarnation = 0;
    std::string name;
    std::uint32_t chunk = 0;
  };
  std::vector<Event> events;
};

/// In the order of the union in node.capnp, less its `none`.
using Body =
    std::variant<Ask, Answer, Chunk, Stored, Start, Here, Linked, Refused, Begin, Ended, Moved,
                 Leaving, Left, End, Done, Offer, StatusRequest, Status, Ping, Pong, Events>;

/// "ask"; for errors and logs.
std::string_view name_of(const Body& body);

}  // namespace node

struct NodeEnvelope {
  std::uint64_t job = 0;
  node::Body body;
};

Message encode(const NodeEnvelope& envelope);

/// Validates as if the sender were hostile: sizes, enums, counts against core/limits.hpp, blobs
/// against what they are said to hold. The error names message and field. A plan inside is not read
/// yet.
Expected<NodeEnvelope> decode_node(const Message& message);

}  // namespace leeway
