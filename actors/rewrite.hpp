#pragma once
// Rewrite: a blob while it gets new contents.
#include <utility>

#include "kernels/executor.hpp"
#include "tensor/blob.hpp"

namespace leeway {

/// In place if the blob is not shared, otherwise in a new blob, so that other holders keep the old
/// contents.
class Rewrite {
 public:
  Rewrite(Executor& on, Blob& blob) : on_(on), blob_(blob), in_place_(blob.unique()) {
    if (in_place_) {
      on_.begin_write(blob_);
    } else {
      on_.begin_read(blob_);
      fresh_ = on_.allocate(blob_.size());
    }
  }
  const float* from() const { return blob_.as_floats(); }
  float* to() { return in_place_ ? blob_.mutable_floats() : fresh_.mutable_floats(); }
  /// To be called when the executor has been given the work that writes to().
  void done() {
    if (!in_place_) {
      on_.end_read(blob_);
      blob_ = std::move(fresh_);
    }
    on_.end_write(blob_);
  }

 private:
  Executor& on_;
  Blob& blob_;
  Blob fresh_;
  bool in_place_;
};

}  // namespace leeway
