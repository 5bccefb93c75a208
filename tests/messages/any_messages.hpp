#pragma once
// Random messages for property tests; only to be called in a property.
#include <vector>

#include "messages/envelope.hpp"
#include "messages/node.hpp"

namespace leeway::test {

/// A random envelope of each kind of body. Numbers at the ends of their ranges are among them.
std::vector<Envelope> any_envelopes();
std::vector<NodeEnvelope> any_node_envelopes();

}  // namespace leeway::test
