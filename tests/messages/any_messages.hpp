#pragma once
// Random messages for property tests. Call the functions only inside a property.
#include <vector>

#include "messages/envelope.hpp"
#include "messages/node.hpp"

namespace leeway::test {

/// A random envelope of each kind of body. Numbers include the ends of their ranges.
std::vector<Envelope> any_envelopes();
std::vector<NodeEnvelope> any_node_envelopes();

}  // namespace leeway::test
