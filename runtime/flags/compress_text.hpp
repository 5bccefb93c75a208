#pragma once
// The text of `--compress`.
#include <string>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// "push=top_k(0.01),pull=bf16", one of both, or none for neither. What the text does not name
/// stays as in `present`. The error lists the codecs.
Expected<plan::Compression> parse_compression(const std::string& text,
                                              const plan::Compression& present);
std::string text_of(const plan::Compression& compression);

}  // namespace leeway
