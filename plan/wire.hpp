#pragma once
// Converts plans to and from Cap'n Proto. Only plan/*.cpp and generated .cpp files include it.
#include <span>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "core/expected.hpp"
#include "messages/generator/wire.hpp"
#include "plan/plan.capnp.h"

namespace leeway::wire {

/// The spelling of actors in plans: "worker2".
inline std::string plain(Address in) {
  return spelled(in);
}
void read(Address& out, capnp::Text::Reader in, const char* field);

std::vector<std::uint64_t> words_of(capnp::MessageBuilder& builder);
/// Refuses an oversized message before any of it is read.
Status check_size(std::span<const std::uint64_t> words, const char* kind);
/// With a nesting limit for residual layers inside residual layers.
capnp::ReaderOptions plan_options(std::size_t words);

/// Refuses too many or too deeply nested layers, before any of them takes memory.
void require_layer_limits(plan_schema::Plan::Reader in);

/// The words of the message that `write(root)` builds.
template <class Schema, class Write>
std::vector<std::uint64_t> words_of(Write write) {
  capnp::MallocMessageBuilder builder;
  write(builder.initRoot<Schema>());
  return words_of(builder);
}

/// Decodes words of an untrusted sender by `read(out, root)`. Errors begin with `kind`.
template <class Schema, class T, class Read>
Expected<T> read_words(std::span<const std::uint64_t> words, const char* kind, Read read) {
  if (const Status status = check_size(words, kind); !status) return status.error();
  try {
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()),
        plan_options(words.size()));
    const auto root = reader.getRoot<Schema>();
    require_layer_limits(root);
    T out;
    read(out, root);
    return out;
  } catch (const Malformed& malformed) {
    return Error{concat(kind, ": ", malformed.text)};
  } catch (const kj::Exception& exception) {
    return Error{concat(kind, ": malformed: ", exception.getDescription().cStr())};
  }
}

}  // namespace leeway::wire
