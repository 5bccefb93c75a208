#pragma once
// The second part of one-step-delay: how many more updates a loss takes as a pipeline gets deeper.
//
// Jung, Shin and Lee, "Mitigating Staleness in Asynchronous Pipeline Parallelism via Basis
// Rotation", ICML 2026, arXiv 2602.03515, train under PipeDream, whose stages stash the weights of
// each batch in flight. The gradients of stage s of S are S-1-s updates old. From 1 to 32 stages,
// Adam takes 5.81 times as many iterations to a loss.
#include <string>
#include <vector>

#include "reproduction.hpp"
#include "tuned_study.hpp"

namespace leeway::study {

/// One subject for each depth: the same model, of which each stage has some of the layers. Keeps a
/// reference to `base`. Runs need the figures "iterations", of stashing_updates(), and losses.
std::vector<Subject> stashing_subjects(const Plan& base, std::uint32_t width);
double stashing_target();  // test loss
/// Updates of a run to the target.
double stashing_updates(const Result& result);
std::string stashing_table(const TunedStudy& study);
std::string stashing_verdict(const TunedStudy& study);
std::string stashing_seeds(const TunedStudy& study);
/// Updates to the target by depth, and the losses of one seed over virtual time.
std::vector<Chart> stashing_charts(const TunedStudy& study);

}  // namespace leeway::study
