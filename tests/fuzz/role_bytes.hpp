#pragma once
// Helpers for fuzz programs of roles: messages from bytes, and an outbox.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/outbox.hpp"
#include "core/check.hpp"
#include "messages/envelope.hpp"
#include "policies/codec/codec.hpp"
#include "tests/messages/fields_envelope.hpp"

namespace leeway::test {

/// Reads values from bytes: mostly small values, which are meaningful to roles, and extreme ones.
class Bytes {
 public:
  /// `codec`: of most tensors that are encoded; null: none.
  Bytes(std::span<const std::uint8_t> bytes, std::vector<std::int64_t> block_sizes,
        const Codec* codec = nullptr, CodecId codec_id = CodecId::none)
      : bytes_(bytes), sizes_(std::move(block_sizes)), codec_(codec), codec_id_(codec_id) {}
  bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_[0];
    bytes_ = bytes_.subspan(1);
    return first;
  }

  void read(bool& out) { out = byte() % 2 != 0; }
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) void read(T& out) {
    const std::uint8_t first = byte();
    if (first < 240)
      out = static_cast<T>(first % 16);
    else if (first < 248)
      out = static_cast<T>((std::uint64_t{1} << (sizeof(T) * 8 - 2)) - 1 - first % 2);
    else
      out = static_cast<T>(std::numeric_limits<T>::max() - first % 2);
  }
  template <class T>
  requires std::is_enum_v<T>
  void read(T& out) { out = static_cast<T>(byte() % 6); }
  template <std::floating_point T>
  void read(T& out) {
    constexpr double kValues[] = {1, 1.0 / 3, 0.5, 0, 1e-300, 1e300, 4, -1};
    out = static_cast<T>(kValues[byte() % std::size(kValues)]);
  }
  void read(std::string& out) { out.assign(byte() % 8, static_cast<char>(byte())); }
  void read(Duration& out) { read(out.ns); }
  template <class Tag, class Rep>
  void read(Id<Tag, Rep>& out) {
    Rep value{};
    read(value);
    out = Id<Tag, Rep>(value);
  }
  template <class Tag>
  void read(Count<Tag>& out) {
    std::int64_t value = 0;
    read(value);
    out = Count<Tag>(value);
  }
  void read(msg::BlockData& out) {
    read(out.block);
    read(out.version);
    const std::uint8_t kind = byte();
    if (kind < 255) read_tensor(kind, out);  // otherwise without data
  }
  void read(msg::StageTensor& out) { read_tensor(byte(), out); }
  void read(Address& out) { out = address(); }
  void read(Blob& out) { out = Blob::allocate(byte()); }
  void read(Message& out) {
    std::vector<std::uint64_t> words;
    read(words);
    out = Message(words, {});
  }
  template <class... Arms>
  void read(std::variant<Arms...>& out) {
    const std::size_t kind = byte() % sizeof...(Arms);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == kind ? read(out.template emplace<I>()) : void()), ...);
    }
    (std::index_sequence_for<Arms...>());
  }
  template <class T>
  void read(std::vector<T>& out) {
    out.resize(byte() % 5);
    for (auto& item : out) read(item);
  }
  template <class T>
  void read(T& out) {
    if constexpr (requires { typename T::variant; })
      read(static_cast<typename T::variant&>(out));
    else
      std::apply([this](auto&... field) { (read(field), ...); }, fields(out));
  }

  Body body() {
    Body out;
    read(static_cast<Body::variant&>(out));
    return out;
  }
  Address address() {
    const std::uint8_t first = byte();
    return {static_cast<RoleKind>(first % 5), first < 250 ? first / 5u % 4 : 0xffffffffu};
  }

 private:
  template <class Tensor>
  void read_tensor(std::uint8_t kind, Tensor& out) {
    if (kind >= 240) read(out.dtype);
    // Usually the size of a block of the model.
    out.shape = kind < 128 ? Shape{sizes_[kind % sizes_.size()]} : Shape{kind % 4, kind % 16};
    out.data = Blob::allocate(static_cast<std::size_t>(out.shape.count()) * size_of(DType::f32));
    if (codec_ && kind >= 32 && kind < 240) return read_encoded(out);
    if (kind >= 250) {
      out.dtype = DType::f32;
      out.codec = static_cast<CodecId>(byte() % 9);
      if (out.codec != CodecId::none) out.data = Blob::allocate(byte());
    }
    if (out.data.size() > 0) std::memset(out.data.mutable_data(), kind, out.data.size());
  }

  /// An encoding of the right size, with any content.
  template <class Tensor>
  void read_encoded(Tensor& out) {
    out.codec = codec_id_;
    out.data = Blob::allocate(codec_->size(static_cast<std::size_t>(out.shape.count())));
    for (std::size_t i = 0; i < out.data.size(); ++i)
      out.data.mutable_data()[i] = static_cast<std::byte>(byte());
  }

  std::span<const std::uint8_t> bytes_;
  std::vector<std::int64_t> sizes_;
  const Codec* const codec_;
  const CodecId codec_id_;
};

/// Drops messages; keeps the work.
class NullOutbox : public Outbox {
 public:
  Instant now() const override { return now_; }
  Rng& random() override { return rng_; }
  void send(Address, Message message) override { LW_CHECK(decode(message).has_value()); }
  void after(Duration, TimerToken) override {}
  void compute(std::shared_ptr<Work> work) override { work_.push_back(std::move(work)); }
  void watch(Address) override {}
  void emit(const Event&) override {}

  void do_work(Role& role) {
    now_ = now_ + milliseconds(1);
    while (!work_.empty()) {
      const auto work = std::move(work_.front());
      work_.pop_front();
      for (int part = 0; part < work->parts(); ++part) {
        work->run(part);
        role.on_part(*work, part, *this);
      }
    }
  }

 private:
  Instant now_;
  Rng rng_{1};
  std::deque<std::shared_ptr<Work>> work_;
};

}  // namespace leeway::test
