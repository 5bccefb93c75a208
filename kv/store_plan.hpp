#pragma once
// The plan of a run whose workers compute in loops of the user's: its model is the table of their
// keys.
#include <cstdint>
#include <string>
#include <vector>

#include "kv/run.hpp"
#include "kv/store_state.hpp"
#include "kv/table.hpp"

namespace leeway::kv {

/// Whether a gradient of zeros changes the weights, or may do so. Keys are then pushed separately.
bool counts_zeros(const plan::Optimizer& optimizer);
/// Throws StoreError for keys that make no table.
Plan store_plan(const Declarations& declarations, const Options& options);
/// As many shards as wanted, if each gets a part of the table.
std::uint32_t shards_for(const std::vector<plan::Layer>& table, std::uint32_t wanted);
/// Whether the loops of this plan lease samples; without, they decide when they end.
bool leases_samples(const Plan& plan);
/// How keys differ from those of `other`, such as "worker 0": "has initialised key "b", worker 0
/// has not"; empty if they do not.
std::string difference(const std::vector<TableKey>& first, const std::vector<TableKey>& found,
                       const std::string& other);
/// Gives a resumed run without ranges the samples that it began with, whose number is that of its
/// workers then.
void continue_samples(Plan& plan, const Plan& began);

}  // namespace leeway::kv
