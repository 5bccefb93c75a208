#pragma once
// The header for tests of scenarios: simulate() and its checks, sweeps over seeds, and stories. It
// needs no test framework, and its checks work in those of Catch2 and GoogleTest.
#include "leeway.hpp"
#include "sim/story.hpp"
#include "testing/checks.hpp"
#include "testing/events.hpp"
#include "testing/sweep.hpp"
