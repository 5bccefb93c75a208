#pragma once
// Expected<T>: a value or an Error, for failures at a boundary (configuration, files, decoding).
// The text of an Error names the thing, the value found and the correct value.
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/check.hpp"

namespace leeway {

struct Error {
  std::string text;
};

template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }

  /// The value. Requires has_value().
  T& operator*() & { return get(); }
  const T& operator*() const& { return const_cast<Expected*>(this)->get(); }
  T&& operator*() && { return std::move(get()); }
  T* operator->() { return &get(); }
  const T* operator->() const { return &const_cast<Expected*>(this)->get(); }

  /// Requires !has_value().
  const Error& error() const {
    LW_CHECK(!has_value());
    return std::get<1>(state_);
  }

 private:
  T& get() {
    LW_CHECK(has_value(), std::get_if<1>(&state_) ? std::get<1>(state_).text : std::string());
    return *std::get_if<0>(&state_);
  }
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}
  explicit operator bool() const { return !error_; }
  const Error& error() const {
    LW_CHECK(error_.has_value());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace leeway
