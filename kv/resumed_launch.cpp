#include "kv/resumed_launch.hpp"

#include <variant>
#include <vector>

#include "core/text.hpp"
#include "kv/store_plan.hpp"
#include "kv/table.hpp"

namespace leeway::kv {

Expected<ResumePoint> find_store_run(const std::string& where, const std::string& name) {
  auto from = find_checkpoint(where, where == "latest" ? name : "");
  if (from && table_keys(from->plan.model).empty())
    return Error{concat(where,
                        ": was not started by `leeway launch`; resume it with `leeway resume ",
                        shell_path(where), '`')};
  return from;
}

std::string why_not_resumed(const Plan& began, const Plan& declared) {
  std::string why = difference(table_keys(began.model), table_keys(declared.model), "the run");
  const bool leases = leases_samples(declared);
  if (why.empty() && leases != leases_samples(began))
    why = leases ? "leases samples, the run does not" : "leases no samples, the run does";
  if (why.empty() && leases && began.data != declared.data)
    why = concat("has ", std::get<plan::CustomData>(declared.data).name, ", the run ",
                 std::get<plan::CustomData>(began.data).name);
  return why.empty() ? "" : concat("--resume: the program ", why, "; start the program of the run");
}

std::string ignored_settings(const Plan& plan, const Plan& began, const Plan& declared) {
  std::vector<std::string> names;
  const auto compare = [&](const char* name, auto Plan::*setting) {
    if (began.*setting != declared.*setting && plan.*setting == began.*setting)
      names.push_back(name);
  };
  compare("optimizer", &Plan::optimizer);
  compare("type", &Plan::consistency);
  compare("batch", &Plan::batch);
  compare("epochs", &Plan::stop);
  if (names.empty()) return "";
  return concat("the resumed run keeps its own ", join(names, ", "),
                "; flags change them, such as --lr, --staleness, --batch and --epochs");
}

}  // namespace leeway::kv
