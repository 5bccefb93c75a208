#pragma once
// Conversion between a plan's values and their Cap'n Proto form. Only plan/*.cpp includes it.
// Readers throw wire::Malformed.
#include <string>
#include <variant>
#include <vector>

#include "messages/generator/wire.hpp"
#include "plan.capnp.h"
#include "plan/plan.hpp"

namespace leeway::wire {

inline std::string read_text(capnp::Text::Reader in) {
  return {in.begin(), in.size()};
}
template <class To, class From>
To read_enum(From from, To last, const char* field) {
  To out;
  read_enum(out, from, last, field);
  return out;
}

template <class Which>
[[noreturn]] void unknown_arm(const char* field, Which which) {
  throw Malformed{concat(field, " is of the unknown kind ", static_cast<unsigned>(which))};
}

void write(plan_schema::Straggler::Builder out, const plan::Straggler& in);
void write(plan_schema::Fault::Builder out, const plan::Fault& in);
void write(plan_schema::World::Builder out, const plan::World& in);
plan::Straggler read(plan_schema::Straggler::Reader in);
plan::Fault read(plan_schema::Fault::Reader in);
plan::World read(plan_schema::World::Reader in);

}  // namespace leeway::wire
