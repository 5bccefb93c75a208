#include "transport/mesh.hpp"

#include "core/text.hpp"
#include "core/this_host.hpp"
#include "tensor/shared_arena.hpp"
#include "transport/certificates.hpp"
#include "transport/mesh_node.hpp"
#include "transport/probe.hpp"

namespace leeway {
namespace transport {

Expected<std::unique_ptr<Mesh>> open_mesh_of(const MeshOptions& options, MeshEvents events,
                                             const Protocol& protocol) {
  if (const std::string why = unresolved(options.address); !why.empty())
    return Error{concat("cannot listen on ", options.address, ": ", why,
                        "; give an address or a name of this machine, as in 127.0.0.1:4242")};
  if (options.tls.empty() && !is_loopback(options.address))
    return Error{
        concat("cannot listen on ", options.address,
               " without TLS, since others could read and change the traffic; make certificates "
               "with `leeway cert DIR --node NAME`, bring DIR/NAME to each node, and give it --tls "
               "with that folder")};
  if (options.window_bytes < 1024)
    return Error{concat("a window of ", options.window_bytes, " bytes is too small; give 1024")};
  MeshOptions usable = options;
  if (usable.address == "localhost") usable.address = "127.0.0.1";
  if (options.transport != Transport::tcp)
    if (const Status shares = use_shared_arena(); !shares) {
      if (options.transport == Transport::shared_memory)
        return Error{concat(shares.error().text, "; let blobs use TCP")};
      usable.transport = Transport::tcp;
      if (events.on_note) events.on_note(concat(shares.error().text, "; blobs will use TCP"));
    }
  auto tls = Tls::read(options.tls);
  if (!tls) return tls.error();
  Secret secret{};
  if (options.tls.empty()) {
    const auto read = user_secret();
    if (!read) return read.error();
    secret = *read;
  } else if (events.on_note) {
    for (const auto& warning : tls_folder_warnings(options.tls)) events.on_note(warning);
  }
  auto node =
      std::make_unique<MeshNode>(usable, std::move(events), protocol, std::move(*tls), secret);
  if (const Status listens = node->listen(); !listens) return listens.error();
  return std::unique_ptr<Mesh>(std::move(node));
}

}  // namespace transport

Expected<std::unique_ptr<Mesh>> open_mesh(const MeshOptions& options, MeshEvents events) {
  return transport::open_mesh_of(options, std::move(events), transport::own_protocol());
}

}  // namespace leeway
