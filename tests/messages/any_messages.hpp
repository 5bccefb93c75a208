#pragma once
// Random messages, for use inside a property.
#include <vector>

#include "messages/envelope.hpp"
#include "messages/node.hpp"

namespace leeway::test {

/// One random envelope for each kind of body, also with numbers at the ends of their ranges.
std::vector<Envelope> any_envelopes();
std::vector<NodeEnvelope> any_node_envelopes();

}  // namespace leeway::test
