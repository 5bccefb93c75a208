#include "cluster/post.hpp"

#include <sys/socket.h>

#include "cluster/probe.hpp"
#include "cluster/tls_files.hpp"

namespace leeway::cluster {
namespace {

class Config final : public CafConfig {
 public:
  Config(const PostOptions& options, const TlsFiles* tls_files) {
    load<caf::io::middleman>();
    add_frames(*this);
    // Work stealing polls with sleeps of 50 us; a sharing scheduler wakes at once.
    set_option("scheduler.policy", caf_word("sharing"));
    set_option("scheduler.max-threads", std::max<std::size_t>(1, options.threads));
    // Frames are loaded on the thread that reads them, in their order.
    set_option("middleman.workers", std::size_t{0});
    // The mesh sends its own signs of life, ahead of waiting frames.
    set_option("middleman.heartbeat-interval", caf::timespan{0});
    set_option("middleman.app-identifiers", std::vector<std::string>{"leeway-mesh"});
    if (!tls_files) return;
    load<caf::openssl::manager>();
    set_tls(*this, tls_files->certificate_path(), tls_files->key_path(),
            tls_files->authority_path());
  }
};

}  // namespace

struct Post::State {
  State(const PostOptions& opening, std::unique_ptr<TlsFiles> files)
      : options(opening),
        tls_files(std::move(files)),
        config(options, tls_files.get()),
        system(config) {
    // Do not wait for the gate: it ends with the post.
    system.await_actors_before_shutdown(false);
  }
  caf::actor_companion& companion() {
    return *static_cast<caf::actor_companion*>(caf::actor_cast<caf::abstract_actor*>(gate));
  }

  PostOptions options;
  std::unique_ptr<TlsFiles> tls_files;
  Config config;
  caf::actor_system system;
  caf::actor gate;
  Route gate_route;
  std::uint16_t port = 0;
  bool closed = false;
};

Post::Post(std::unique_ptr<State> state) : state_(std::move(state)) {}

Expected<std::unique_ptr<Post>> Post::open(const PostOptions& options) {
  std::unique_ptr<TlsFiles> tls_files;
  if (!options.tls.empty()) {
    auto read = TlsFiles::read(options.tls);
    if (!read) return read.error();
    tls_files = std::move(*read);
  }
  auto state = std::make_unique<State>(options, std::move(tls_files));
  state->gate = state->system.spawn<caf::actor_companion>();
  state->gate_route = caf::actor_cast<Route>(state->gate);
  return std::unique_ptr<Post>(new Post(std::move(state)));
}

Status Post::listen(Handlers handlers) {
  const PostOptions& options = state_->options;
  state_->companion().on_enqueue(
      [handlers = std::move(handlers)](caf::mailbox_element_ptr element) {
        if (Frame* const frame = content_as<Frame>(*element))
          handlers.on_frame(element->sender, *frame);
        else if (const auto* const route = lost_route(*element))
          handlers.on_lost(route);
      });
  const char* const address = options.address.c_str();
  const auto port = options.tls.empty()
                        ? caf::io::publish(state_->gate, options.port, address, true)
                        : caf::openssl::publish(state_->gate, options.port, address, true);
  if (!port)
    return Error{concat("cannot listen on ", options.address, ":", options.port,
                        ": another program does, or the address is not of this host; give another "
                        "port, or 0 for any that is free")};
  state_->port = *port;
  return {};
}

/// CAF closes a connection only after it has sent everything, which a stopped peer prevents. A link
/// that leaves has waited before, so the rest is dropped.
void Post::cut_connections() {
  const auto broker =
      state_->system.middleman().named_broker<caf::io::basp_broker>(caf_word("BASP"));
  state_->system.middleman().backend().post([broker] {
    auto* const connections =
        static_cast<caf::io::abstract_broker*>(caf::actor_cast<caf::abstract_actor*>(broker));
    // The number of a connection is that of its socket.
    for (const auto& connection : connections->connections())
      shutdown(static_cast<int>(connection.id()), SHUT_RDWR);
  });
}

Post::~Post() {
  close();
}

void Post::close() {
  if (state_->closed) return;
  state_->closed = true;
  cut_connections();
  state_->companion().on_enqueue(nullptr);  // waits for the running handler
  state_->companion().cleanup(caf::exit_reason::user_shutdown, nullptr);
}

std::uint16_t Post::port() const {
  return state_->port;
}

Expected<Route> Post::call(const std::string& host, std::uint16_t port, Duration limit) {
  caf::scoped_actor self{state_->system};
  const auto middleman = state_->options.tls.empty()
                             ? state_->system.middleman().actor_handle()
                             : state_->system.openssl_manager().actor_handle();
  Expected<Route> result = Error{"it is no Leeway process"};
  connect_by(
      self, middleman, host, port, std::chrono::nanoseconds(limit.ns),
      [&](const caf::node_id&, const Route& route, const std::set<std::string>&) {
        if (route) result = route;
      },
      [&](const caf::error& error) {
        result =
            error == caf::sec::request_timeout
                ? Error{"it takes calls but does not answer; is it stopped?"}
                : Error{
                      "it closed the connection; give both sides --tls with certificates of the "
                      "same cluster, or neither, and check that a Leeway process listens there"};
      });
  return result;
}

bool Post::is_own(const Route& route) const {
  return route == state_->gate_route;
}

void Post::send(const Route& to, Frame frame) {
  deliver(to, state_->gate_route, std::move(frame));
}

void Post::watch(const Route& route) {
  watch_route(state_->gate, route);
}

}  // namespace leeway::cluster
