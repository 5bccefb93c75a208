#pragma once
// The digest of a file: XXH3 with 128 bits, which finds damage but no forgery.
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace leeway::checkpoint {

class Digest {
 public:
  Digest();
  ~Digest();
  void add(std::span<const std::byte> bytes);
  /// 32 hexadecimal digits.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string digest_of(std::span<const std::byte> bytes);

}  // namespace leeway::checkpoint
