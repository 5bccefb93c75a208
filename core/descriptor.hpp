#pragma once
// Descriptor: a file descriptor with an owner, and the system's reasons.
#include <string>

namespace leeway {

/// Owns a file descriptor, or -1.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

/// The system's text for errno.
std::string system_reason();

}  // namespace leeway
