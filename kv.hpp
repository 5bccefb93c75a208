#pragma once
// The header for programs with training loops of their own: keys that workers push to and pull
// from, and run() and simulate(), which run such a loop on many workers.
#include "kv/run.hpp"
#include "kv/serve.hpp"
#include "kv/store.hpp"
#include "leeway.hpp"
