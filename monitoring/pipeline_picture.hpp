#pragma once
// Pictures of a pipeline's table: who does what when, as text and as SVG.
#include <cstddef>
#include <string>

#include "policies/pipeline/play.hpp"

namespace leeway {

/// Operations that a picture shows; of more, nobody would see anything.
inline constexpr std::size_t kMaxPictureOps = 20'000;

struct PipelinePicture {
  int columns = 100;     // of the terminal; longer tables go on below
  bool colours = false;  // ANSI, of 256
  std::string title;     // of the SVG picture
};

/// One row a stage, time to the right: each operation is named (F3: forward of micro-batch 3) and
/// as wide as it takes long, a dot is idle time, | an update that takes none. Asynchronous tables
/// say which version of the weights an operation reads (F3v1). Requires a timeline of this table,
/// and at most kMaxPictureOps operations.
std::string pipeline_text(const pipeline::Table& table, const pipeline::Timeline& timeline,
                          const PipelinePicture& options = {});

/// The same as one SVG picture, with a legend and an axis of time. Requires a title without
/// characters that XML escapes.
std::string pipeline_svg(const pipeline::Table& table, const pipeline::Timeline& timeline,
                         const PipelinePicture& options = {});

/// What the letters mean that occur in the table: "F forward, B backward, . idle".
std::string pipeline_legend(const pipeline::Table& table);

std::size_t count_ops(const pipeline::Table& table);

}  // namespace leeway
