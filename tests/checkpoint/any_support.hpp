#pragma once
// Random values of the hand-written types in manifests: those of messages.
#include "tests/messages/any_scheduler_shard.hpp"
