#include "runtime/flags/split_text.hpp"

#include <variant>

#include "core/text.hpp"
#include "plan/settings.hpp"
#include "runtime/flags/arguments.hpp"
#include "runtime/words.hpp"

namespace leeway {

Expected<plan::SplitData> parse_split_data(const std::string& text) {
  if (text == "shared") return plan::SplitData(plan::SharedData{});
  if (text == "iid") return iid();
  if (text == "dirichlet") return dirichlet();
  if (text == "by_label") return by_label();
  if (const auto one = arguments_of(text, "dirichlet"); one.size() == 1) return dirichlet(one[0]);
  if (const auto one = arguments_of(text, "by_label");
      one.size() == 1 && one[0] >= 0 && one[0] <= 1e9 &&
      one[0] == static_cast<double>(static_cast<std::uint32_t>(one[0])))
    return by_label(static_cast<std::uint32_t>(one[0]));
  return Error{concat("--split-data: \"", text,
                      "\" is not known; give shared, iid, dirichlet(0.5) or by_label(2)")};
}

std::string text_of(const plan::SplitData& split) {
  const std::string name = plan::choices("split_data")[split.index()];
  if (const auto* shares = std::get_if<plan::DirichletSplit>(&split))
    return concat(name, '(', shares->alpha, ')');
  if (const auto* pieces = std::get_if<plan::LabelSplit>(&split))
    return concat(name, '(', pieces->labels, ')');
  return name;
}

}  // namespace leeway
