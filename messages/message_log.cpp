#include "messages/message_log.hpp"

#include <capnp/compat/json.h>
#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <capnp/serialize.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/files.hpp"
#include "core/text.hpp"
#include "messages/blobs.hpp"
#include "messages/generator/names.hpp"
#include "messages/trace.capnp.h"

namespace leeway {
namespace {

/// Traces may be large: the content is mapped, and stays valid as long as the pointer.
using Content = std::shared_ptr<const Files::Content>;

kj::ArrayPtr<const capnp::word> words_of(const Content& content) {
  const auto bytes = content->bytes();
  return kj::arrayPtr(reinterpret_cast<const capnp::word*>(bytes.data()),
                      bytes.size() / sizeof(capnp::word));
}

/// Records are read from a trusted file; a weights message may be long.
capnp::ReaderOptions reader_options() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = std::uint64_t{1} << 40;
  return options;
}

using BodyReader = capnp::DynamicStruct::Reader;

std::string kind_of(const BodyReader& body) {
  KJ_IF_MAYBE (field, body.which()) {
    return generator::snake_case(field->getProto().getName().cStr());
  }
  return "unknown";
}

std::string text_of(const BodyReader& body, bool json) {
  KJ_IF_MAYBE (field, body.which()) {
    const auto value = body.get(*field);
    if (!json) return kj::str(value).cStr();
    const capnp::JsonCodec codec;
    return codec.encode(value, field->getType()).cStr();
  }
  return json ? "null" : "()";
}

/// The record at the beginning of `words`, which begin after it on return; nullopt if they end
/// inside it.
template <class Read>
bool read_record(kj::ArrayPtr<const capnp::word>& words, Read read) {
  if (words.size() == 0 || capnp::expectedSizeInWordsFromPrefix(words) > words.size()) return false;
  capnp::FlatArrayMessageReader message(words, reader_options());
  read(message.getRoot<schema::MessageRecord>());
  words = kj::arrayPtr(message.getEnd(), words.end());
  return true;
}

/// "malformed" for a message that could not be recorded whole.
std::string kind_of(const schema::MessageRecord::Reader& record) {
  return record.hasEnvelope() ? kind_of(record.getEnvelope().getBody()) : "malformed";
}

/// A run that was killed leaves part of a record, behind which no reader would find another.
void remove_cut_record(const std::string& path) {
  std::size_t whole = 0;
  {
    const auto file = disk().read(path);
    if (!file) return;  // a new one
    auto words = words_of(*file);
    while (read_record(words, [](const auto&) {}))
      ;
    whole = static_cast<std::size_t>(words.begin() - words_of(*file).begin()) * sizeof(capnp::word);
  }
  std::error_code ignored;  // the device of a full disk has no size
  if (std::filesystem::file_size(path, ignored) > whole && !ignored)
    std::filesystem::resize_file(path, whole, ignored);
}

bool passes(const MessageFilter& filter, const schema::MessageRecord::Reader& record) {
  const auto is = [](const std::string& wanted, const char* found) {
    return wanted.empty() || wanted == found;
  };
  return is(filter.from, record.getFrom().cStr()) && is(filter.to, record.getTo().cStr()) &&
         (filter.kind.empty() || kind_of(record) == filter.kind);
}

}  // namespace

ReceivedMessage received(Instant at, Address from, Address to, const Message& message) {
  return {at, from, to, message, blob_bytes(message)};
}

MessageLog::MessageLog(std::string path) : path_(std::move(path)) {
  remove_cut_record(path_);
  out_.open(path_, std::ios::app | std::ios::binary);
}

void MessageLog::write(const ReceivedMessage& received) {
  const auto header = received.message.header();
  const auto words =
      kj::arrayPtr(reinterpret_cast<const capnp::word*>(header.data()), header.size());
  capnp::MallocMessageBuilder builder;
  auto record = builder.initRoot<schema::MessageRecord>();
  record.setNs(received.at.ns);
  record.setFrom(spelled(received.from));
  record.setTo(spelled(received.to));
  record.setTensorBytes(received.tensor_bytes);
  try {
    capnp::FlatArrayMessageReader envelope(words, reader_options());
    record.setEnvelope(envelope.getRoot<schema::Envelope>());
  } catch (const kj::Exception&) {
    // A malformed message: the record has its sender and its time.
  }
  const auto flat = capnp::messageToFlatArray(builder);
  const auto bytes = flat.asChars();
  std::lock_guard lock(mutex_);
  if (out_) out_.write(bytes.begin(), static_cast<std::streamsize>(bytes.size()));
}

Status MessageLog::finish() {
  std::lock_guard lock(mutex_);
  errno = 0;
  out_.flush();
  if (out_) return {};
  return Error{concat(path_, ": cannot be written", errno ? ": " : "",
                      errno ? std::strerror(errno) : "", "; messages are missing")};
}

std::vector<std::string> message_kinds() {
  std::vector<std::string> kinds;
  for (const auto field : capnp::Schema::from<schema::Envelope::Body>().getUnionFields())
    kinds.push_back(generator::snake_case(field.getProto().getName().cStr()));
  return kinds;
}

Expected<std::string> read_messages(const std::string& path, const MessageFilter& filter,
                                    const std::function<bool(const RecordedMessage&)>& show) {
  const auto file = disk().read(path);
  if (!file)
    return Error{concat(file.error().text, "; give the folder of a run with --trace-messages")};
  struct Found {
    std::int64_t ns;
    const capnp::word* record;
  };
  std::vector<Found> found;
  auto words = words_of(*file);
  const capnp::word* at = words.begin();
  while (read_record(words, [&](const schema::MessageRecord::Reader& record) {
    if (passes(filter, record)) found.push_back({record.getNs(), at});
  }))
    at = words.begin();
  const bool is_cut = words.size() > 0;
  // Nodes send their messages in batches.
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.ns < b.ns; });
  bool goes_on = true;
  for (const auto& one : found) {
    auto rest = kj::arrayPtr(one.record, words_of(*file).end());
    read_record(rest, [&](const schema::MessageRecord::Reader& record) {
      const BodyReader body = record.getEnvelope().getBody();
      goes_on = show({{record.getNs()},
                      record.getFrom().cStr(),
                      record.getTo().cStr(),
                      kind_of(record),
                      record.getTensorBytes(),
                      record.hasEnvelope() ? text_of(body, filter.json) : ""});
    });
    if (!goes_on) break;
  }
  return is_cut ? concat(path, ": ends inside a record; the run was killed, or its disk was full")
                : std::string();
}

}  // namespace leeway
