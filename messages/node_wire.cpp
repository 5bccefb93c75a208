#include "messages/node_wire.hpp"

#include "core/limits.hpp"

namespace leeway::wire {

void write(node_schema::Actor::Builder out, Address in) {
  out.setKind(static_cast<std::uint8_t>(in.kind));
  out.setIndex(in.index);
}

void read(Address& out, node_schema::Actor::Reader in) {
  read_enum(out.kind, in.getKind(), RoleKind::host, "kind");
  out.index = in.getIndex();
  const std::uint32_t end = out.kind == RoleKind::worker  ? limits::kMaxWorkers
                            : out.kind == RoleKind::shard ? limits::kMaxShards
                                                          : 1;
  require_below(out.index, end, "index");
}

}  // namespace leeway::wire
