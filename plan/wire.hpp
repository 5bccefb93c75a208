#pragma once
// Plans on the way to Cap'n Proto and back. Included by plan/*.cpp and generated .cpp files only.
#include <span>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "core/expected.hpp"
#include "messages/generator/wire.hpp"

namespace leeway::wire {

/// As plans spell actors: "worker2".
inline std::string plain(Address in) {
  return spelled(in);
}
void read(Address& out, capnp::Text::Reader in, const char* field);

std::vector<std::uint64_t> words_of(capnp::MessageBuilder& builder);
/// Refuses what is too large, before anything is read.
Status check_size(std::span<const std::uint64_t> words, const char* kind);
/// Deep enough for residual layers in residual layers.
capnp::ReaderOptions plan_options(std::size_t words);

/// What `write(root)` builds.
template <class Schema, class Write>
std::vector<std::uint64_t> words_of(Write write) {
  capnp::MallocMessageBuilder builder;
  write(builder.initRoot<Schema>());
  return words_of(builder);
}

/// What `read(out, root)` makes of words from a hostile sender. Errors begin with `kind`.
template <class Schema, class T, class Read>
Expected<T> read_words(std::span<const std::uint64_t> words, const char* kind, Read read) {
  if (const Status status = check_size(words, kind); !status) return status.error();
  try {
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()),
        plan_options(words.size()));
    T out;
    read(out, reader.getRoot<Schema>());
    return out;
  } catch (const Malformed& malformed) {
    return Error{concat(kind, ": ", malformed.text)};
  } catch (const kj::Exception& exception) {
    return Error{concat(kind, ": malformed: ", exception.getDescription().cStr())};
  }
}

}  // namespace leeway::wire
