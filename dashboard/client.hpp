#pragma once
// Reads the state of a run from its page.
#include <string>

#include "core/expected.hpp"

namespace leeway::dashboard {

/// `url` as the run has printed it; "HOST:PORT" and "PORT" work as well. `authority`: the file of
/// the certificate authority for https; empty: the system's. Returns the state as JSON. Errors: no
/// page answers, or it refuses the token.
Expected<std::string> fetch_state(const std::string& url, const std::string& authority);
/// Stops the run after its current iterations.
Status request_stop(const std::string& url, const std::string& authority);

}  // namespace leeway::dashboard
