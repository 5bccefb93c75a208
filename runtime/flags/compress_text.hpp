#pragma once
// The text of `--compress`.
#include <string>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// A list such as "push=top_k(0.01),pull=bf16", or none. Codecs that a list does not name stay
/// as in `present`. The error lists the codecs.
Expected<plan::Compression> parse_compression(const std::string& text,
                                              const plan::Compression& present);
std::string text_of(const plan::Compression& compression);

}  // namespace leeway
