#pragma once
// The only header that a scenario program includes: Scenario and run(), the functions that describe
// a run, whole models, results, and the interfaces for custom data and layers.
#include "core/rng.hpp"
#include "models/datasets/table.hpp"
#include "models/layer.hpp"
#include "runtime/models.hpp"
#include "runtime/scenario.hpp"
