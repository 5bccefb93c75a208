#pragma once
// Addresses in the conversation of hosts, on the way to Cap'n Proto and back. Included by
// messages/*.cpp and generated .cpp files only.
#include "core/address.hpp"
#include "messages/node.capnp.h"
#include "messages/wire.hpp"

namespace leeway::wire {

void write(node_schema::Actor::Builder out, Address in);
void read(Address& out, node_schema::Actor::Reader in);

}  // namespace leeway::wire
