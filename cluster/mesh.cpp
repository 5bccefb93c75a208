#include "cluster/mesh.hpp"

#include "cluster/certificates.hpp"
#include "cluster/mesh_node.hpp"
#include "cluster/probe.hpp"
#include "tensor/shared_arena.hpp"

namespace leeway {
namespace cluster {

Expected<std::unique_ptr<Mesh>> open_mesh_of(const MeshOptions& options, MeshEvents events,
                                             const Protocol& protocol) {
  // 32 arbitrary bytes crash a plain port of CAF 0.17.6, and a header that claims 4 GB makes it
  // wait for ever. So a plain port is only on loopback; mutual TLS keeps out other processes.
  if (const std::string why = unresolved(options.address); !why.empty())
    return Error{concat("cannot listen on ", options.address, ": ", why,
                        "; give an address or a name of this machine, as in 127.0.0.1:4242")};
  if (options.tls.empty() && !is_loopback(options.address))
    return Error{
        concat("cannot listen on ", options.address,
               " without TLS, since any host could send to it; make certificates with "
               "`leeway cert DIR --node NAME`, bring DIR/NAME to each node, and give it --tls "
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
  auto post = Post::open({.address = usable.address,
                          .port = options.port,
                          .tls = options.tls,
                          .threads = options.threads});
  if (!post) return post.error();
  if (!options.tls.empty() && events.on_note)
    for (const auto& warning : tls_folder_warnings(options.tls)) events.on_note(warning);
  auto node = std::make_unique<MeshNode>(usable, std::move(events), protocol, std::move(*post));
  const Status listens = node->listen();
  if (!listens) return listens.error();
  return std::unique_ptr<Mesh>(std::move(node));
}

}  // namespace cluster

Expected<std::unique_ptr<Mesh>> open_mesh(const MeshOptions& options, MeshEvents events) {
  return cluster::open_mesh_of(options, std::move(events), cluster::own_protocol());
}

}  // namespace leeway
