#pragma once
// ProcessNetwork: the transport between simulated processes, as roles and hosts see the one in
// transport/.
//
// A link connects two processes and loses no message. While packets in one direction are lost, or
// the connection is broken, messages wait. Messages with tensors overtake others, but messages
// between two actors stay in order. A process that hears nothing of another for the silence limit
// is notified. It gives up a connection that stays broken five times as long.
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/expected.hpp"
#include "sim/cluster/timeline.hpp"
#include "sim/network.hpp"

namespace leeway::sim {

using ProcessId = std::uint32_t;

class ProcessNetwork {
 public:
  /// The receiving end of a process. A peer is the other end of one link.
  class Process {
   public:
    virtual ~Process() = default;
    virtual void on_message(PeerId peer, Address from, Address to, Message message) = 0;
    virtual void on_silent(PeerId peer) = 0;
    virtual void on_heard(PeerId peer) = 0;
    /// The last call for a peer.
    virtual void on_gone(PeerId peer, const std::string& reason) = 0;
  };

  /// `silence`: after which a process reports that it does not hear another.
  ProcessNetwork(Timeline& timeline, const World& world, std::uint64_t seed, Duration silence);
  ProcessNetwork(const ProcessNetwork&) = delete;
  ProcessNetwork& operator=(const ProcessNetwork&) = delete;

  /// A process starts, and listens under `name` until it ends.
  ProcessId add(std::string name, Process& process);
  /// The process has ended. Others get its messages before they notice; if it was killed, perhaps
  /// without the last ones of each link.
  void end(ProcessId process, bool killed);
  /// Calls the process of that name. `then` gets the peer, or why there is none within `limit`.
  void connect(ProcessId from, const std::string& name, Duration limit,
               std::function<void(const Expected<PeerId>&)> then);
  void send(PeerId peer, Address from, Address to, Message message);
  /// Ends a link after the messages that were sent.
  void leave(PeerId peer);
  /// False while the connection is broken, and after its end.
  bool is_connected(PeerId peer) const;
  const std::string& name(ProcessId process) const { return processes_[process].name; }

  // Faults. Those that last nest. Those between two processes concern their machines: also
  // processes that start there later.

  /// A frozen process sends no sign of life. Its owner lets it handle nothing.
  void freeze(ProcessId process);
  void thaw(ProcessId process);
  /// Packets in this direction are lost, and sent again later.
  void block(ProcessId from, ProcessId to);
  void unblock(ProcessId from, ProcessId to);
  /// The connection breaks, and cannot be made again until mend().
  void cut(ProcessId a, ProcessId b);
  void mend(ProcessId a, ProcessId b);
  /// The network link of the process takes `factor` times as long per byte.
  void slow(ProcessId process, double factor) { network_.slow_node(process, factor); }
  void restore(ProcessId process, double factor) { network_.restore_node(process, factor); }

 private:
  struct Listening {
    std::string name;
    ProcessId machine = 0;  // the first process of that name
    Process* process = nullptr;
    bool ended = false;
    std::uint32_t freezes = 0;
  };
  /// A message, or the end of the link.
  struct Item {
    Address from, to;
    Message message;
    std::string end;  // why; empty: a message
  };
  /// One end of a link, and what it sends.
  struct End {
    ProcessId process = 0;
    PeerId peer;  // the name of the other end here
    bool open = true;
    std::deque<Item> waiting;
    std::map<std::pair<Address, Address>, Instant> last;  // arrival by sender and receiver
    Instant latest;                                       // arrival of all
    std::optional<Instant> lost_from;  // messages that would arrive later are lost
    std::uint64_t quiet = 0;  // number of the present period without a sign of life; 0: none
    bool silent = false;      // the other end has been notified
  };
  struct Link {
    std::array<End, 2> ends;
  };
  /// One end of a link, by number.
  struct Place {
    Link* link = nullptr;
    std::size_t side = 0;
    End& end() const { return link->ends[side]; }
    End& other() const { return link->ends[1 - side]; }
    Place opposite() const { return {link, 1 - side}; }
  };
  struct Faults {
    std::uint32_t blocks = 0, cuts = 0;
    std::uint64_t cut = 0;  // number of the present cut
  };

  /// The machines of two processes: faults of the network outlive processes.
  using Machines = std::pair<ProcessId, ProcessId>;
  Machines machines(ProcessId from, ProcessId to) const {
    return {processes_[from].machine, processes_[to].machine};
  }
  Machines unordered(ProcessId a, ProcessId b) const {
    return std::minmax(processes_[a].machine, processes_[b].machine);
  }
  Place place_of(PeerId peer) const { return places_.at(peer.value()); }
  bool is_blocked(ProcessId from, ProcessId to) const;
  bool is_cut(ProcessId a, ProcessId b) const;
  bool can_call(ProcessId from, ProcessId to) const;
  void try_to_connect(ProcessId from, const std::string& name, Instant until,
                      std::function<void(const Expected<PeerId>&)> then);
  PeerId link_of(ProcessId from, ProcessId to);
  void put(Place from, Item item);
  void transmit(Place from, Item item);
  void arrive(Place from, const Item& item);
  void close(Place end, const std::string& reason);
  /// After a change of what the processes on the machine of `from` can send to those on that of
  /// `to`.
  void update(ProcessId from, ProcessId to);
  void update(Place from);
  void expect_sign(Place from);
  void give_up(Place end, std::uint64_t cut);

  Timeline& timeline_;
  Network network_;
  Rng rng_;
  const World world_;
  const Duration silence_;
  std::vector<Listening> processes_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<Place> places_;  // by peer
  std::map<Machines, Faults> faults_;
  std::uint64_t last_number_ = 0;
};

}  // namespace leeway::sim
