#pragma once
// The order of forwards and backwards in the interleaved schedules: an update's micro-batches go
// through the chunks in groups of about as many micro-batches as there are stages.
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// Whether the max(1, M / S) groups of an update, rounded down, are equal. The error names the
/// nearest numbers of micro-batches that make equal groups.
Status equal_groups(const Spec& spec);

/// Micro-batches of a group.
int group_size(const Spec& spec);

/// The k-th forward of the first update: a group of micro-batches through chunk 0, then through
/// chunk 1, ..., then the next group.
Op forward_at(const Spec& spec, int k);

/// The k-th backward: the same order, from the last chunk to the first.
Op backward_at(const Spec& spec, int k, OpKind kind);

}  // namespace leeway::pipeline
