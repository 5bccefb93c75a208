#pragma once
// ReplicatedRole: a role that can have two replicas (replica.hpp).
//
// Besides its inputs, such a role uses no time and no random numbers.
#include "actors/protocol_role.hpp"
#include "core/expected.hpp"

namespace leeway {

class ReplicatedRole : public ProtocolRole {
 public:
  /// Whether save() is possible: the role has no work under way.
  virtual bool is_quiet() const = 0;
  /// The whole state, for a new standby. Its blobs are shared with the role, which does not write
  /// to shared memory. Requires is_quiet().
  virtual Message save() const = 0;
  /// Replaces the state by one of save(), before any input. Error: it is of another role.
  virtual Status restore(const Message& state) = 0;
};

}  // namespace leeway
