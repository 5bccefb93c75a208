#pragma once
// Converts addresses in messages of hosts to and from Cap'n Proto. Only messages/*.cpp and
// generated .cpp files include it.
#include "core/address.hpp"
#include "messages/node.capnp.h"
#include "messages/wire.hpp"

namespace leeway::wire {

void write(node_schema::Actor::Builder out, Address in);
void read(Address& out, node_schema::Actor::Reader in);

}  // namespace leeway::wire
