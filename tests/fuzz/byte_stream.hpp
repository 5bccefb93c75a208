#pragma once
// stream_of: a stream that receives a fuzzer's bytes and then ends.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <span>

#include "core/check.hpp"
#include "transport/stream.hpp"

namespace leeway::fuzz {

/// `bytes` must fit into a socket's buffer: at most 64 KiB.
inline std::unique_ptr<transport::Stream> stream_of(std::span<const std::uint8_t> bytes) {
  int ends[2];
  LW_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  const ssize_t sent = write(ends[1], bytes.data(), bytes.size());
  LW_CHECK(sent == static_cast<ssize_t>(bytes.size()), sent);
  close(ends[1]);
  return std::make_unique<transport::Stream>(transport::Socket(ends[0]),
                                             transport::Stream::Side::called, nullptr);
}

}  // namespace leeway::fuzz
