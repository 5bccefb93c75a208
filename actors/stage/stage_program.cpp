#include "actors/stage/stage_program.hpp"

#include "core/check.hpp"

namespace leeway {

StageProgram::StageProgram(const pipeline::Spec& spec, int stage)
    : micro_batches_(spec.micro_batches), endless_(pipeline::endless(spec, stage)) {
  LW_CHECK(!endless_.again.empty());
}

StageProgram::Op StageProgram::at(std::int64_t index) const {
  const auto before = static_cast<std::int64_t>(endless_.first.size());
  const auto length = static_cast<std::int64_t>(endless_.again.size());
  const std::int64_t times = index < before ? 0 : (index - before) / length;
  const pipeline::Op& op =
      index < before ? endless_.first[static_cast<std::size_t>(index)]
                     : endless_.again[static_cast<std::size_t>((index - before) % length)];
  return {op.kind, op.micro_batch / micro_batches_ + times, op.micro_batch % micro_batches_,
          op.chunk, op.version + times};
}

StageProgram::Op StageProgram::next_forward(std::int64_t index) const {
  for (;; ++index)
    if (const Op op = at(index); op.kind == pipeline::OpKind::forward) return op;
}

std::vector<StageProgram::Reading> StageProgram::readings(std::int64_t index,
                                                          std::int64_t newest) const {
  std::vector<Reading> found;
  for (;; ++index) {
    const Op op = at(index);
    if (op.kind != pipeline::OpKind::forward) continue;
    if (op.version > newest) return found;
    if (found.empty() || found.back().version < op.version)
      found.push_back({op.version, op.iteration, op.iteration});
    found.back().last = op.iteration;
  }
}

}  // namespace leeway
