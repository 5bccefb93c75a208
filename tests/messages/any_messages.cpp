#include "tests/messages/any_messages.hpp"

#include "tests/messages/any_envelope.hpp"
#include "tests/messages/any_node.hpp"

namespace leeway::test {
namespace {

template <class AnyEnvelope>
std::vector<AnyEnvelope> one_of_each() {
  std::vector<AnyEnvelope> all(std::variant_size_v<typename decltype(AnyEnvelope::body)::variant>);
  for (std::size_t kind = 0; kind < all.size(); ++kind) {
    any(all[kind]);
    any(all[kind].body, kind);
  }
  return all;
}

}  // namespace

std::vector<Envelope> any_envelopes() {
  return one_of_each<Envelope>();
}
std::vector<NodeEnvelope> any_node_envelopes() {
  return one_of_each<NodeEnvelope>();
}

}  // namespace leeway::test
