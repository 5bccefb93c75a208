@0xad37520b332af22a;
# Annotations for the generator: C++ names and types, limits, and defaults.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::generator::schema");

# ---- files ----

annotation namespace(file, struct) :Text;
# Namespace of the plain structs.
annotation include(file) :Text;
# A header that the plain structs need.
annotation stem(file) :Text;
# Name of the generated files, if not the schema's.
annotation flat(file) :Void;
# In C++, nested structs that a field uses become siblings of the outer struct.
annotation support(file) :Text;
# A header with hand-written read() and write(). Only the generated .cpp includes it.
annotation visitable(file) :Void;
# Every struct has for_each_field(in, f), which calls f(name, value) for each member. A struct that
# is only a union has the one of its arm, and name_of().

# ---- names and types ----

annotation name(field, group, struct) :Text;
# Name of the C++ member or struct, if not the schema's. An arm with a name is a struct of this
# name: a copy of its struct, or one with the arm as its member.
annotation union(struct) :Text;
# The member that holds the union of the struct, if not `kind`.
annotation type(field, group, union) :Type;
# C++ type of a member, of the items of a list, or of a union.
struct Type {
  name @0 :Text;  # C++ type; read() and plain() convert it
  below @1 :Text;  # limit of the values
  wholeList @2 :Bool;  # the whole list makes one value
}
annotation mapped(struct, enum) :Mapped;
# The C++ type is hand-written.
struct Mapped {
  type @0 :Text;
  blobs @1 :Bool;  # its data travels in blobs
}
annotation schemaOnly(struct) :Void;
# Has no C++ type, like the values of annotations.
annotation initially(field) :Text;
# Default in C++, if not the schema's.
annotation constant(field) :Text;
# Always has the value of this C++ constant; not a member.
annotation optional(struct) :Void;
# A union of a Void and another arm is a std::optional of the other arm.
annotation method(struct) :Text;
# Declaration of a hand-written member function.
annotation ordered(struct) :Void;
# The struct has operator<=> and operator<<.

# ---- limits ----
#
# Numbers, or names of constants in core/limits.hpp. Decoding refuses values outside them.

annotation limit(field) :Text;
# Maximum number of items of a list.
annotation range(field) :Range;
struct Range {
  least @0 :Text;
  most @1 :Text;
  above @2 :Text;
  below @3 :Text;
}
annotation count(field) :Void;
# An Int64 of 0 or more and below 2^62.
annotation finite(field) :Void;
annotation ascending(field) :Void;
# Each item of the list is above the one before.
annotation checked(struct) :Void;
# Fields depend on each other; a hand-written check() validates them.

# ---- messages ----

annotation root(struct) :Root;
# The struct has encode() and the function `decode`.
struct Root {
  decode @0 :Text;
  kind @1 :Text;  # name in errors, if the struct has no union of messages
  words @2 :Bool;  # encoded as words, not as a Message with blobs
}
annotation blobs(struct) :Blobs;
# Members for the blobs of the message that no field refers to.
struct Blobs {
  each @0 :List(Text);  # one member per blob, by index
  all @1 :Text;  # one member for all blobs
}
