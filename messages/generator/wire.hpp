#pragma once
// Support for generated code that reads and writes Cap'n Proto. Only .cpp files include it.
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/limits.hpp"
#include "core/time.hpp"
#include "messages/generator/malformed.hpp"

namespace leeway::wire {

/// Limits for reading a message of `words` words from an untrusted sender. A valid message visits
/// each word at most a few times, so the limit stops amplification by pointers that share a target.
inline capnp::ReaderOptions reader_options(std::size_t words) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 8 * words + 64;
  options.nestingLimit = 16;
  return options;
}

// ---- strong types ----

template <class Tag, class Rep>
Rep plain(Id<Tag, Rep> id) {
  return id.value();
}
template <class Tag>
std::int64_t plain(Count<Tag> count) {
  return count.value();
}
inline std::int64_t plain(Duration duration) {
  return duration.ns;
}
template <class Tag, class Rep>
void read(Id<Tag, Rep>& out, Rep in, const char*) {
  out = Id<Tag, Rep>(in);
}
template <class Tag>
void read(Count<Tag>& out, std::int64_t in, const char* field) {
  require_count(in, field);
  out = Count<Tag>(in);
}
inline void read(Duration& out, std::int64_t in, const char* field) {
  require_count(in, field);
  out = nanoseconds(in);
}
inline void read_count(std::int64_t& out, std::int64_t in, const char* field) {
  require_count(in, field);
  out = in;
}

// ---- texts, enums, lists ----

/// Texts may contain zero bytes.
inline capnp::Text::Reader text_of(const std::string& in) {
  return {in.c_str(), in.size()};
}
inline void read_text(std::string& out, capnp::Text::Reader in) {
  out.assign(in.begin(), in.size());
}

/// Requires that the C++ enum has the values of the schema's enum, in the same order up to `last`.
template <class To, class From>
void read_enum(To& out, From in, To last, const char* field) {
  const auto value = static_cast<unsigned>(in);
  require(value <= static_cast<unsigned>(last), field, " has the unknown value ", value);
  out = static_cast<To>(value);
}

template <class T>
unsigned count_of(const std::vector<T>& in) {
  return static_cast<unsigned>(in.size());
}

/// `read(item, from)` reads one item. Its errors name it: "blocks[3].version is -1".
template <class T, class List, class Read>
void read_list(std::vector<T>& out, List in, const char* field, Read read) {
  out.resize(in.size());
  unsigned at = 0;
  try {
    for (; at < in.size(); ++at) read(out[at], in[at]);
  } catch (Malformed& malformed) {
    malformed.text = in_place(concat(field, '[', at, ']'), malformed.text);
    throw;
  }
}

/// Throws Malformed for an unknown arm of a union.
template <class Which>
[[noreturn]] void throw_unknown(const char* field, Which which) {
  throw Malformed{concat(field, " is of the unknown kind ", static_cast<unsigned>(which))};
}

}  // namespace leeway::wire
