#include <cmath>

#include "messages/wire.hpp"

namespace leeway {

std::string_view msg::name_of(Refused::Reason reason) {
  switch (reason) {
    case Refused::Reason::malformed:
      return "malformed";
    case Refused::Reason::unknown_worker:
      return "unknown worker";
    case Refused::Reason::stale_view:
      return "stale view";
    case Refused::Reason::too_stale:
      return "too stale";
    case Refused::Reason::gap:
      return "gap";
  }
  return "?";
}

namespace wire {

void write_tensor(schema::TensorRef::Builder out, DType dtype, const Shape& in, const Blob& data,
                  Blobs& blobs) {
  out.setBlob(static_cast<std::uint32_t>(blobs.size()));
  out.setDtype(static_cast<schema::TensorRef::DType>(dtype));
  auto shape = out.initShape(static_cast<unsigned>(in.rank()));
  for (int axis = 0; axis < in.rank(); ++axis) shape.set(static_cast<unsigned>(axis), in[axis]);
  blobs.push_back(data);
}

void read_tensor(schema::TensorRef::Reader in, ConstBlobs blobs, DType& dtype, Shape& out,
                 Blob& data) {
  const auto blob =
      read_index(in.getBlob(), static_cast<std::uint32_t>(blobs.size()), "tensor.blob");
  dtype = read_enum(in.getDtype(), DType::i32, "tensor.dtype");
  require(in.getLayout() == schema::TensorRef::Layout::PLAIN,
          "tensor.layout is unknown, must be plain");
  require(in.getCodec() == schema::TensorRef::Codec::NONE, "tensor.codec is unknown, must be none");
  const auto extents = in.getShape();
  require(extents.size() <= limits::kMaxRank, "tensor.shape has rank ", extents.size(),
          ", must be at most ", limits::kMaxRank);
  std::vector<std::int64_t> shape;
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  for (const std::int64_t extent : extents) {
    require(extent >= 0, "tensor.shape has the negative extent ", extent);
    require(!__builtin_mul_overflow(bytes, extent, &bytes), "tensor.shape is too large");
    shape.push_back(extent);
  }
  out = Shape(shape);
  data = blobs[blob];
  require(data.size() >= static_cast<std::size_t>(bytes), "tensor needs ", bytes,
          " bytes, its blob has ", data.size());
}

void write_blocks(BlockListBuilder out, const std::vector<msg::BlockData>& blocks, Blobs& blobs) {
  for (unsigned i = 0; i < blocks.size(); ++i) {
    out[i].setBlock(blocks[i].block.value());
    out[i].setVersion(blocks[i].version.value());
    if (!blocks[i].data) continue;
    write_tensor(out[i].initTensor(), blocks[i].dtype, blocks[i].shape, blocks[i].data, blobs);
  }
}

std::vector<msg::BlockData> read_blocks(BlockListReader in, ConstBlobs blobs) {
  require(in.size() <= limits::kMaxBlocks, "blocks has ", in.size(), " entries, must be at most ",
          limits::kMaxBlocks);
  std::vector<msg::BlockData> out(in.size());
  for (unsigned i = 0; i < in.size(); ++i) {
    out[i].block = BlockId(read_index(in[i].getBlock(), limits::kMaxBlocks, "block"));
    out[i].version = Version(read_count(in[i].getVersion(), "version"));
    if (in[i].hasTensor())
      read_tensor(in[i].getTensor(), blobs, out[i].dtype, out[i].shape, out[i].data);
  }
  return out;
}

void write(schema::Pull::Builder out, const msg::Pull& in) {
  out.setIteration(in.iteration.value());
  out.setOwnClock(in.own_clock.value());
  out.setDtype(static_cast<schema::TensorRef::DType>(in.dtype));
}

msg::Pull read(schema::Pull::Reader in) {
  msg::Pull out;
  out.iteration = Iteration(read_count(in.getIteration(), "iteration"));
  out.own_clock = Clock(read_count(in.getOwnClock(), "own_clock"));
  out.dtype = read_enum(in.getDtype(), DType::i32, "dtype");
  require(out.own_clock.value() <= out.iteration.value(), "own_clock is ", out.own_clock,
          ", must not be beyond the iteration ", out.iteration);
  return out;
}

void write(schema::Weights::Builder out, const msg::Weights& in, Blobs& blobs) {
  out.setIteration(in.iteration.value());
  write_blocks(out.initBlocks(static_cast<unsigned>(in.blocks.size())), in.blocks, blobs);
}

msg::Weights read(schema::Weights::Reader in, ConstBlobs blobs) {
  msg::Weights out;
  out.iteration = Iteration(read_count(in.getIteration(), "iteration"));
  out.blocks = read_blocks(in.getBlocks(), blobs);
  for (const auto& block : out.blocks)
    require(bool(block.data), "block ", block.block, " has no data");
  return out;
}

void write(schema::Push::Builder out, const msg::Push& in, Blobs& blobs) {
  out.setIteration(in.iteration.value());
  out.setBucket(in.bucket);
  out.setBucketCount(in.bucket_count);
  out.setKind(static_cast<schema::Push::Kind>(in.kind));
  out.setWeight(in.weight);
  out.setSamples(in.samples);
  write_blocks(out.initBlocks(static_cast<unsigned>(in.blocks.size())), in.blocks, blobs);
  auto rows = out.initRows(static_cast<unsigned>(in.rows.size()));
  for (unsigned i = 0; i < in.rows.size(); ++i) rows.set(i, in.rows[i]);
}

msg::Push read(schema::Push::Reader in, ConstBlobs blobs) {
  msg::Push out;
  out.iteration = Iteration(read_count(in.getIteration(), "iteration"));
  out.bucket_count = in.getBucketCount();
  require(out.bucket_count >= 1 && out.bucket_count <= limits::kMaxBuckets, "bucket_count is ",
          out.bucket_count, ", must be 1 to ", limits::kMaxBuckets);
  out.bucket = read_index(in.getBucket(), out.bucket_count, "bucket");
  out.kind = read_enum(in.getKind(), msg::Push::Kind::empty, "kind");
  out.weight = in.getWeight();
  require(std::isfinite(out.weight) && out.weight >= 0, "weight is ", out.weight,
          ", must be 0 or more");
  out.samples = in.getSamples();
  out.blocks = read_blocks(in.getBlocks(), blobs);
  const bool empty = out.kind == msg::Push::Kind::empty;
  for (const auto& block : out.blocks)
    require(bool(block.data) != empty, "block ", block.block,
            empty ? " has data in an empty push" : " has no data");
  for (const auto row : in.getRows()) out.rows.push_back(row);
  return out;
}

void write(schema::Pushed::Builder out, const msg::Pushed& in) {
  out.setIteration(in.iteration.value());
  out.setBucket(in.bucket);
  out.setDurability(static_cast<schema::Pushed::Durability>(in.durability));
  out.setRepeat(in.repeat);
}

msg::Pushed read(schema::Pushed::Reader in) {
  msg::Pushed out;
  out.iteration = Iteration(read_count(in.getIteration(), "iteration"));
  out.bucket = read_index(in.getBucket(), limits::kMaxBuckets, "bucket");
  out.durability = read_enum(in.getDurability(), msg::Pushed::Durability::durable, "durability");
  out.repeat = in.getRepeat();
  return out;
}

void write(schema::Refused::Builder out, const msg::Refused& in) {
  out.setReason(static_cast<schema::Refused::Reason>(in.reason));
  out.setText(text_of(in.text));
  out.setIteration(in.iteration.value());
}

msg::Refused read(schema::Refused::Reader in) {
  msg::Refused out;
  out.reason = read_enum(in.getReason(), msg::Refused::Reason::gap, "reason");
  out.text = read_text(in.getText());
  out.iteration = Iteration(read_count(in.getIteration(), "iteration"));
  return out;
}

}  // namespace wire
}  // namespace leeway
