#pragma once
// Model: the contents of one schema file for the emitters, as plain values with C++ names.
//
// Names of types are relative to namespace leeway: "msg::Pull".
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace leeway::generator {

struct Struct;
struct Union;

/// Limits of a number as C++ expressions; empty for no limit.
struct Limits {
  std::string least, most, above, below;
  bool count = false;  // 0 or more and below 2^62
  bool finite = false;
};

enum class Kind { nothing, number, boolean, text, data, enumeration, structure, choice };

/// The type of a field, of the items of a list, or of an arm of a union.
struct Type {
  Kind kind = Kind::nothing;
  std::string name;
  std::string schema;   // of enums, structs and groups: Cap'n Proto's class, "schema::Push::Kind"
  bool strong = false;  // hand-written: plain() and read() convert it
  std::string last;     // of enums: the last value, "msg::Push::Kind::empty"
  bool blobs = false;   // its write() and read() take the message's blobs
  std::shared_ptr<Union> choice;  // of a field that holds a union
  Struct* structure = nullptr;    // of another generated struct
};

struct Field {
  std::string name;      // of the member: "wait"
  std::string label;     // in errors: "wait_ns"
  std::string accessor;  // of Cap'n Proto: "WaitNs"; empty for a union in the struct itself
  std::string comment;
  Type type;
  bool list = false;
  bool whole_list = false;  // the member is constructed from all items
  bool ascending = false;
  std::string list_limit;
  Limits limits;
  std::string initially;  // C++ expression; empty: the type's default
  std::string constant;   // the only value; not a member
};

struct Arm {
  std::string label;       // "max_pool2d"
  std::string words;       // "max pool2d"
  std::string accessor;    // "MaxPool2d"
  std::string enumerator;  // "MAX_POOL2D"
  std::string comment;
  Type type;
  std::string initially;  // of a number
  std::string member;     // of the struct that wraps a number: "factor"
  bool empty = false;     // without fields, here and in the schema
  bool absent = false;    // Void arm `none`, not in the variant
};

struct Union {
  std::string name;
  std::string schema;
  std::vector<Arm> arms;
  bool blobs = false;
  bool optional = false;  // a std::optional of the arm that is not absent
  /// Whether its arms are structs. It then derives from the std::variant, and its source file
  /// defines construction, copies, moves and comparison, which each user would compile again for
  /// all arms.
  bool is_declared() const {
    return !optional && std::ranges::all_of(arms, [](const Arm& arm) {
      return arm.absent || arm.type.structure != nullptr;
    });
  }
};

struct Enum {
  std::string name;
  std::vector<std::string> values, words;
};

struct Struct {
  std::string name;
  std::string schema;
  std::string comment;
  std::vector<Field> fields;  // a single one of kind `choice` if `only_choice`
  std::vector<Enum> enums;    // inside it
  std::vector<Struct*> inner;
  std::vector<std::string> methods;       // declarations
  std::vector<std::string> blob_members;  // blobs that no field names, by index
  std::string all_blobs;                  // one member for all of them
  std::string decode, kind;  // of a root: the function that decodes it, what errors call it
  bool only_choice = false;  // it is a union
  bool recursive = false;    // it holds itself, in lists
  bool checked = false;
  bool ordered = false;
  bool blobs = false;
  bool words = false;     // a root without blobs
  bool arm_only = false;  // made for an arm that is not a struct in the schema
};

struct File {
  std::string path;  // "messages/common.capnp"
  std::string stem;  // of the generated files: "messages/common"
  std::string comment;
  bool visitable = false;
  std::vector<std::string> includes, supports;
  std::vector<std::string> imports;  // other schemas of messages or plans, by path
  std::vector<Enum> enums;
  std::vector<Struct*> structs;  // each after the structs that it contains
};

}  // namespace leeway::generator
