#include "monitoring/profile_table.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "core/text.hpp"
#include "kernels/instruction_set.hpp"
#include "monitoring/format.hpp"

namespace leeway {

namespace {

bool has_products(const Model& model, Precision precision) {
  for (int i = 0; i < model.layers(); ++i)
    if (model.layer(i).precision() == precision) return true;
  return false;
}

}  // namespace

std::string profile_table(const std::vector<Profile::Row>& rows,
                          const std::optional<kernels::Peak>& peak) {
  double total = 0;
  std::size_t width = 5;
  for (const auto& row : rows) {
    total += row.seconds;
    width = std::max(width, row.where.size());
  }
  std::ostringstream out;
  const auto name = [&](const std::string& text) -> std::ostream& {
    return out << "  " << std::left << std::setw(static_cast<int>(width)) << text << std::right;
  };
  name("") << "                calls  ms per call   of time   GFLOP/s      GB/s   of peak\n";
  for (const auto& row : rows) {
    const double seconds = std::max(row.seconds, 1e-12);
    const bool moves = row.bytes > 0;
    const double speed = (moves ? row.bytes : row.flops) / seconds;
    name(row.where) << "  " << std::left << std::setw(9) << row.what << std::right << std::setw(10)
                    << grouped(row.calls) << std::setw(13)
                    << fixed(1e3 * row.seconds / static_cast<double>(row.calls), 4) << std::setw(10)
                    << percent(row.seconds / std::max(total, 1e-12)) << std::setw(10)
                    << (moves || row.flops == 0 ? "" : fixed(speed * 1e-9, 1)) << std::setw(10)
                    << (moves ? fixed(speed * 1e-9, 1) : "") << std::setw(10)
                    << (speed > 0 && peak ? percent(speed / (moves ? peak->bytes : peak->flops))
                                          : "")
                    << '\n';
  }
  name("all") << "                     " << std::setw(13) << duration(total) << '\n';
  if (peak)
    out << concat("  One core's peak, measured now: ", fixed(peak->flops * 1e-9, 0), " GFLOP/s, ",
                  fixed(peak->bytes * 1e-9, 0), " GB/s from memory (caches are faster).\n");
  return out.str();
}

std::string products_text(const Model& model, const std::vector<Device>& devices) {
  std::string text;
  for (const auto kind : {Device::Kind::host, Device::Kind::cuda}) {
    if (std::none_of(devices.begin(), devices.end(),
                     [&](const Device& device) { return device.kind == kind; }))
      continue;
    std::string line;
    for (const Precision precision : kPrecisions) {
      if (!has_products(model, precision)) continue;
      line += concat(line.empty() ? "" : "; ", name_of(precision),
                     " products: ", kernels::product_instructions(precision, kind));
    }
    if (!line.empty())
      text += concat("  On the ", kind == Device::Kind::cuda ? "GPU" : "CPU", ", ", line, '\n');
  }
  return text;
}

}  // namespace leeway
