@0xad37520b332af22a;
# What a schema says for the generator: C++ names and types, limits, and defaults.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::generator::schema");

# ---- files ----

annotation namespace(file, struct) :Text;
# Of the plain structs.
annotation include(file) :Text;
# A header that the plain structs need.
annotation stem(file) :Text;
# Name of the generated files, if not the schema's.
annotation flat(file) :Void;
# Structs inside others stand beside them in C++, if a field uses them.
annotation support(file) :Text;
# A header with hand-written read() and write(). Only the generated .cpp includes it.
annotation visitable(file) :Void;
# Every struct has for_each_field(in, f), which calls f(name, value) for each member. A struct that
# is only a union has the one of its arm, and name_of().

# ---- names and types ----

annotation name(field, group, struct) :Text;
# Of the C++ member or struct, if not the schema's. An arm of a union with a name is a struct of
# this name: a copy of its struct, or one with the arm as its member.
annotation union(struct) :Text;
# The member that holds the union of the struct, if not `kind`.
annotation type(field, group, union) :Type;
# Of a member, of the items of a list, or of a union.
struct Type {
  name @0 :Text;  # C++ type; read() and plain() convert it
  below @1 :Text;  # limit of the values
  wholeList @2 :Bool;  # one value is made of the whole list
}
annotation mapped(struct, enum) :Mapped;
# The C++ type is hand-written.
struct Mapped {
  type @0 :Text;
  blobs @1 :Bool;  # its data travels in blobs
}
annotation schemaOnly(struct) :Void;
# Has no C++ type, as the values of annotations.
annotation initially(field) :Text;
# Value of a new C++ struct, if not the schema's default.
annotation constant(field) :Text;
# Always this C++ constant; not a member.
annotation optional(struct) :Void;
# A union of a Void and another arm is a std::optional of this one.
annotation declarable(struct) :Void;
# A struct that is only a union derives from the std::variant, so that headers can declare it.
annotation method(struct) :Text;
# Declaration of a hand-written member function.
annotation ordered(struct) :Void;
# Has operator<=> and operator<<.

# ---- limits ----
#
# Numbers, or names of constants in core/limits.hpp. Decoding refuses a message beyond them.

annotation limit(field) :Text;
# Most items of a list.
annotation range(field) :Range;
struct Range {
  least @0 :Text;
  most @1 :Text;
  above @2 :Text;
  below @3 :Text;
}
annotation count(field) :Void;
# An Int64 of 0 or more, far from overflow.
annotation finite(field) :Void;
annotation ascending(field) :Void;
# Each item of the list is above the one before.
annotation checked(struct) :Void;
# Fields depend on each other: a hand-written check() decides.

# ---- messages ----

annotation root(struct) :Root;
# Has encode(), and a function that decodes it.
struct Root {
  decode @0 :Text;
  kind @1 :Text;  # in errors, if there is no union of messages
  words @2 :Bool;  # it is encoded as words, not as a Message with blobs
}
annotation blobs(struct) :Blobs;
# Members for blobs that no field names.
struct Blobs {
  each @0 :List(Text);  # members, by the blob's index
  all @1 :Text;  # one member for all of them
}
