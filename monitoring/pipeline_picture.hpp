#pragma once
// Pictures of a pipeline's table: the operations of each stage over time, as text and as SVG.
#include <cstddef>
#include <string>

#include "policies/pipeline/play.hpp"

namespace leeway {

/// Largest number of operations in a readable picture.
inline constexpr std::size_t kMaxPictureOps = 20'000;

struct PipelinePicture {
  int columns = 100;     // of the terminal; longer tables are wrapped
  bool colours = false;  // 256 ANSI colours
  std::string title;     // of the SVG picture
};

/// One row per stage, time to the right. Each operation has a name (F3: forward of micro-batch 3)
/// and a width proportional to its duration; a dot is idle time, | an update without duration.
/// Asynchronous tables show the version of the weights that an operation reads (F3v1). Requires the
/// timeline of this table and at most kMaxPictureOps operations.
std::string pipeline_text(const pipeline::Table& table, const pipeline::Timeline& timeline,
                          const PipelinePicture& options = {});

/// The same picture as SVG, with a legend and a time axis. Requires a title without characters that
/// XML escapes.
std::string pipeline_svg(const pipeline::Table& table, const pipeline::Timeline& timeline,
                         const PipelinePicture& options = {});

/// The meaning of the letters in the table's picture: "F forward, B backward, . idle".
std::string pipeline_legend(const pipeline::Table& table);

std::size_t count_ops(const pipeline::Table& table);

}  // namespace leeway
