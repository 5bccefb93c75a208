#include "messages/worker_scheduler.hpp"

namespace leeway::msg {

/// A short iteration at the lease's end counts; an empty lease is one iteration.
std::int64_t Lease::iterations() const {
  return end == begin ? 1 : (end - begin + batch - 1) / batch;
}

}  // namespace leeway::msg
