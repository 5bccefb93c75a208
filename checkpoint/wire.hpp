#pragma once
// Includes for the generated code of the manifest. Only .cpp files include it.
#include <capnp/message.h>
#include <capnp/serialize.h>

#include <span>
#include <vector>

#include "messages/scheduler_shard.wire.hpp"
#include "messages/wire.hpp"
#include "plan/wire.hpp"
