// A sender of hostile packets to the port of a Leeway process, for tests/cluster/hostile.py.
//
//   hostile_sender PORT [--packets 10000] [--seed 1] [--tls FOLDER] [--after SECONDS] [--blind]
//
// Half of the packets come from strangers: random bytes, truncated, changed, oversized and repeated
// greetings, each on its own connection. The others come from a peer that has greeted the process:
// messages of all kinds with random content, the same truncated, changed, oversized and repeated.
// --blind sends the same bytes without reading answers, to a port that only discards them. Prints
// the numbers of packets and connections, and the seconds.
#include <rapidcheck.h>
#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>

#include "core/rng.hpp"
#include "messages/envelope.hpp"
#include "messages/node.hpp"
#include "tests/messages/any_messages.hpp"
#include "tests/transport/raw_peer.hpp"
#include "tests/transport/tcp_proxy.hpp"
#include "transport/letter.hpp"
#include "transport/small_lane.hpp"

namespace {

using namespace leeway;
using namespace leeway::test;
using namespace leeway::transport;

constexpr std::uint32_t kLetter = static_cast<std::uint32_t>(FrameKind::letter);

/// Some random messages of each kind.
std::vector<Message> random_messages() {
  std::vector<Message> all;
  rc::check([&] {
    for (const auto& each : any_envelopes()) all.push_back(encode(each));
    for (const auto& each : any_node_envelopes()) all.push_back(encode(each));
  });
  return all;
}

class Sender {
 public:
  Sender(std::uint16_t port, std::uint64_t seed, const std::string& tls, bool blind)
      : port_(port), blind_(blind), random_(seed), messages_(random_messages()) {
    auto read = Tls::read(tls);
    LW_CHECK(read.has_value(), read ? "" : read.error().text);
    tls_ = *read;
    Hello hello;
    hello.version = "raw";
    hello.mesh = {1, 2};
    greeting_ = packet_of(hello, kTransportProtocol);
  }

  void send_one() {
    ++packets;
    random_.one_in(2) ? as_stranger() : as_peer();
  }

  std::uint64_t packets = 0, connections = 0;

 private:
  Bytes random_bytes() {
    Bytes bytes(1 + random_.below(5000));
    for (auto& byte : bytes) byte = static_cast<std::byte>(random_.next());
    return bytes;
  }
  Bytes changed(Bytes bytes) {
    for (std::uint64_t i = 1 + random_.below(3); i > 0; --i)
      bytes[random_.below(bytes.size())] = static_cast<std::byte>(random_.next());
    return bytes;
  }

  void as_stranger() {
    Bytes bytes = greeting_;
    switch (random_.below(5)) {
      case 0:
        bytes = random_bytes();
        break;
      case 1:
        bytes.resize(random_.below(bytes.size()));
        break;
      case 2:
        bytes = changed(std::move(bytes));
        break;
      case 3:
        std::memset(bytes.data() + 12, 0xff, 4);  // announces 4 GiB
        break;
      default:
        break;  // the same as before
    }
    ++connections;
    leeway::test::Socket socket = connect_to(port_);
    // A reset leaves no port in use, so that many connections a second are possible.
    const linger reset{1, 0};
    setsockopt(socket.number(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    socket.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  void connect() {
    ++connections;
    orders_.clear();
    peer_ = std::make_unique<RawPeer>(port_, nullptr, tls_, blind_);
    if (!peer_->greet()) peer_.reset();
  }

  Bytes letter() {
    const Message& message = messages_[random_.below(messages_.size())];
    const auto packing = pack_into_letter(message, nullptr);
    if (!packing) return letter();
    const auto any_address = [&] {
      return random_.one_in(2) ? kHost
                               : Address{static_cast<RoleKind>(random_.below(5)),
                                         static_cast<std::uint32_t>(random_.below(4))};
    };
    const Address from = any_address(), to = any_address();
    Bytes bytes;
    append_letter(bytes, {from, to, orders_[{from, to}]++, message}, *packing);
    return bytes;
  }

  void as_peer() {
    if (!peer_) connect();
    if (!peer_) return;
    Bytes bytes = letter();
    bool sent = true;
    switch (random_.below(12)) {
      case 0:
        sent = peer_->send_frame(kLetter, changed(std::move(bytes)));
        break;
      case 1:
        bytes.resize(random_.below(bytes.size()));
        sent = peer_->send_frame(kLetter, bytes);
        break;
      case 2:
        sent = peer_->send_frame(kLetter, bytes, static_cast<std::uint32_t>(random_.next()));
        break;
      case 3:
        sent = peer_->send_frame(kLetter, bytes) && peer_->send_frame(kLetter, bytes);
        break;
      case 4:
        sent = peer_->send_frame(static_cast<std::uint32_t>(random_.below(8)), random_bytes());
        break;
      default:
        sent = peer_->send_frame(kLetter, bytes);
    }
    if (!sent) peer_.reset();
  }

  const std::uint16_t port_;
  const bool blind_;
  Rng random_;
  const std::vector<Message> messages_;
  std::shared_ptr<const Tls> tls_;
  Bytes greeting_;
  std::unique_ptr<RawPeer> peer_;
  std::map<std::pair<Address, Address>, std::uint64_t> orders_;
};

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::uint16_t port = 0;
  std::uint64_t packets = 10'000, seed = 1;
  std::string tls;
  bool blind = false;
  int after = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--packets")
      packets = std::stoull(argv[++i]);
    else if (argument == "--seed")
      seed = std::stoull(argv[++i]);
    else if (argument == "--tls")
      tls = argv[++i];
    else if (argument == "--after")
      after = std::stoi(argv[++i]);
    else if (argument == "--blind")
      blind = true;
    else
      port = static_cast<std::uint16_t>(std::stoi(argument));
  }
  Sender sender(port, seed, tls, blind);
  std::this_thread::sleep_for(std::chrono::seconds(after));
  const auto began = std::chrono::steady_clock::now();
  while (sender.packets < packets) sender.send_one();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("{\"packets\": %lu, \"connections\": %lu, \"seconds\": %.2f}\n", sender.packets,
              sender.connections, took.count());
}
