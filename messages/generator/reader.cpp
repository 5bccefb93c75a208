#include "messages/generator/reader.hpp"

#include <kj/debug.h>

#include <algorithm>

namespace leeway::generator {

// ---- structs ----

Struct* ModelReader::struct_of(Id id, const std::string& name) {
  const auto [place, fresh] = structs_.try_emplace(name);
  if (fresh) {
    place->second = std::make_unique<Struct>();
    fill(*place->second, id, name);
  }
  return place->second.get();
}

void ModelReader::read_annotations(Struct& out, Annotations in) {
  out.checked = names_.has(in, "checked");
  out.ordered = names_.has(in, "ordered");
  out.methods = names_.texts(in, "method");
  if (const auto blobs = names_.annotation(in, "blobs")) {
    const auto value = blobs->getStruct().getAs<schema::Blobs>();
    for (const auto member : value.getEach()) out.blob_members.push_back(string_of(member));
    out.all_blobs = string_of(value.getAll());
    out.blobs = true;
  }
  if (const auto root = names_.annotation(in, "root")) {
    out.decode = string_of(root->getStruct().getAs<schema::Root>().getDecode());
    out.kind = string_of(root->getStruct().getAs<schema::Root>().getKind());
    out.words = root->getStruct().getAs<schema::Root>().getWords();
  }
}

void ModelReader::fill(Struct& out, Id id, const std::string& name) {
  const Node node = names_.node(id);
  out.name = name;
  out.schema = names_.schema_of(id);
  out.comment = names_.comment(id);
  read_annotations(out, node.getAnnotations());
  for (const auto nested : node.getNestedNodes()) {
    const Node inner = names_.node(nested.getId());
    if (without_struct(inner)) continue;
    if (inner.isEnum()) out.enums.push_back(enum_of(nested.getId()));
    if (inner.isStruct() && !names_.flat(id))
      out.inner.push_back(struct_of(nested.getId(), names_.name_of(nested.getId())));
  }
  const auto members = node.getStruct().getFields();
  std::vector<unsigned> order(members.size());
  for (unsigned i = 0; i < order.size(); ++i) order[members[i].getCodeOrder()] = i;
  bool union_done = false;
  for (const unsigned i : order) {
    if (members[i].getDiscriminantValue() == capnp::schema::Field::NO_DISCRIMINANT) {
      out.fields.push_back(field(members[i], names_.comment(id, i)));
    } else if (!union_done) {
      out.only_choice = node.getStruct().getDiscriminantCount() == members.size();
      const auto choice = union_of(id, out.only_choice ? out.name : out.name + "Kind");
      choice->optional = names_.has(node.getAnnotations(), "optional");
      const std::string named = names_.text(node.getAnnotations(), "union");
      out.fields.push_back({.name = named.empty() ? "kind" : named,
                            .type = {.kind = Kind::choice,
                                     .name = choice->name,
                                     .schema = choice->schema,
                                     .blobs = choice->blobs,
                                     .choice = choice}});
      union_done = true;
    }
  }
  for (const Field& one : out.fields) out.blobs |= one.type.blobs;
}

bool ModelReader::without_struct(const Node& node) const {
  const Annotations annotations = node.getAnnotations();
  return names_.has(annotations, "mapped") || names_.has(annotations, "schemaOnly");
}

// ---- files ----

/// Appends `in` after all structs that it contains. Marks structs that contain themselves in lists.
void ModelReader::place(Struct* in, std::set<const Struct*>& begun, std::set<const Struct*>& done,
                        std::vector<Struct*>& out) {
  if (!begun.insert(in).second) {
    in->recursive |= !done.contains(in);
    return;
  }
  const auto visit = [&](const Type& type) {
    if (type.structure) place(type.structure, begun, done, out);
    if (!type.choice) return;
    for (const Arm& one : type.choice->arms)
      if (one.type.structure) place(one.type.structure, begun, done, out);
  };
  for (Struct* inner : in->inner) {
    begun.insert(inner);
    done.insert(inner);
    for (const Field& one : inner->fields) visit(one.type);
  }
  for (const Field& one : in->fields) visit(one.type);
  done.insert(in);
  out.push_back(in);
}

File ModelReader::file(capnp::schema::CodeGeneratorRequest::RequestedFile::Reader requested) {
  File out;
  out.path = string_of(requested.getFilename());
  const Node file = names_.node(requested.getId());
  out.comment = names_.comment(requested.getId());
  out.visitable = names_.has(file.getAnnotations(), "visitable");
  out.includes = names_.texts(file.getAnnotations(), "include");
  out.supports = names_.texts(file.getAnnotations(), "support");
  const std::string folder = out.path.substr(0, out.path.rfind('/') + 1);
  const std::string stem = names_.text(file.getAnnotations(), "stem");
  out.stem = stem.empty() ? out.path.substr(0, out.path.rfind('.')) : folder + stem;
  for (const auto import : requested.getImports()) {
    const std::string name = string_of(import.getName());
    if (!name.starts_with('/')) out.imports.push_back(folder + name);
  }
  extra_.clear();
  file_ = requested.getId();
  std::vector<Struct*> own;
  for (const auto nested : file.getNestedNodes()) {
    const Node node = names_.node(nested.getId());
    if (without_struct(node)) continue;
    if (node.isEnum()) out.enums.push_back(enum_of(nested.getId()));
    if (node.isStruct()) own.push_back(struct_of(nested.getId(), names_.name_of(nested.getId())));
  }
  own.insert(own.end(), extra_.begin(), extra_.end());
  const std::set<const Struct*> mine(own.begin(), own.end());
  std::set<const Struct*> begun, done;
  std::vector<Struct*> ordered;
  for (Struct* one : own) place(one, begun, done, ordered);
  for (Struct* one : ordered)
    if (mine.contains(one)) out.structs.push_back(one);
  return out;
}

}  // namespace leeway::generator
