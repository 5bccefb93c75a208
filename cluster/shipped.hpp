#pragma once
// Data sets on their way to another process: their marks, which distinguish them, and a data set
// made of the arrived pieces.
//
// All values travel as gathered floats, so any data set can be sent, also one of the program.
#include <memory>
#include <vector>

#include "actors/cluster/data_mark.hpp"
#include "core/expected.hpp"
#include "messages/node.hpp"
#include "models/datasets/dataset.hpp"

namespace leeway {

/// Sizes and shapes, and a checksum over the contents: of all samples where those are few, else of
/// some from begin to end.
node::DataMark mark_of(const TrainTest& data);

/// Data sets of that mark without contents, to check a plan against. Gathering from them is a bug.
TrainTest described(const node::DataMark& mark);

/// Samples of a piece, all but the last of a set: about a mebibyte.
std::int64_t samples_of_piece(const node::DataMark& mark);
/// The piece that begins with sample `first`.
node::DataPiece data_piece(const TrainTest& data, const node::DataMark& mark, bool test,
                           std::int64_t first);

/// Collects pieces, each set's in order.
class ShippedData {
 public:
  explicit ShippedData(const node::DataMark& mark);
  ~ShippedData();
  /// Checks sizes and labels as if the sender were hostile.
  Status add(const node::DataPiece& piece);
  /// So far, of both sets together.
  std::int64_t samples() const;
  bool complete() const;
  /// Requires complete(). The error says that the contents are not those of the mark.
  Expected<TrainTest> take();

 private:
  class Pieces;
  node::DataMark mark_;
  std::shared_ptr<Pieces> train_, test_;
};

}  // namespace leeway
