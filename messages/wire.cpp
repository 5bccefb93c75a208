#include "messages/wire.hpp"

namespace leeway::wire {

namespace {

/// `Tensor` is a StageTensor or a BlockData.
template <class Tensor>
void write_tensor(schema::TensorRef::Builder out, const Tensor& in, Blobs& blobs) {
  out.setBlob(static_cast<std::uint32_t>(blobs.size()));
  out.setDtype(static_cast<schema::TensorRef::DType>(in.dtype));
  out.setCodec(static_cast<schema::TensorRef::Codec>(in.codec));
  auto shape = out.initShape(count_of(in.shape));
  for (unsigned axis = 0; axis < shape.size(); ++axis)
    shape.set(axis, in.shape[static_cast<int>(axis)]);
  blobs.push_back(in.data);
}

template <class Tensor>
void read_tensor(Tensor& out, schema::TensorRef::Reader in, ConstBlobs blobs) {
  require_below(in.getBlob(), blobs.size(), "blob");
  read_enum(out.dtype, in.getDtype(), DType::i32, "dtype");
  require(in.getLayout() == schema::TensorRef::Layout::PLAIN, "layout is unknown, must be plain");
  read_enum(out.codec, in.getCodec(), CodecId::random_k, "codec");
  require(out.codec == CodecId::none || out.dtype == DType::f32,
          "an encoding must be of f32 values");
  const auto extents = in.getShape();
  require(extents.size() <= limits::kMaxRank, "shape has rank ", extents.size(),
          ", must be at most ", limits::kMaxRank);
  std::array<std::int64_t, limits::kMaxRank> shape{};
  std::size_t rank = 0;
  auto bytes = static_cast<std::int64_t>(size_of(out.dtype));
  for (const std::int64_t extent : extents) {
    require(extent >= 0, "shape has the negative extent ", extent);
    require(!__builtin_mul_overflow(bytes, extent, &bytes), "shape is too large");
    shape[rank++] = extent;
  }
  out.shape = Shape(std::span<const std::int64_t>(shape.data(), rank));
  out.data = blobs[in.getBlob()];
  if (out.codec != CodecId::none) return;
  require(out.data.size() >= static_cast<std::size_t>(bytes), " needs ", bytes,
          " bytes, its blob has ", out.data.size());
}

}  // namespace

void write(schema::TensorRef::Builder out, const msg::StageTensor& in, Blobs& blobs) {
  write_tensor(out, in, blobs);
}
void read(msg::StageTensor& out, schema::TensorRef::Reader in, ConstBlobs blobs) {
  read_tensor(out, in, blobs);
}

void write(schema::BlockRef::Builder out, const msg::BlockData& in, Blobs& blobs) {
  out.setBlock(in.block.value());
  out.setVersion(in.version.value());
  if (in.data) write_tensor(out.initTensor(), in, blobs);
}

void read(msg::BlockData& out, schema::BlockRef::Reader in, ConstBlobs blobs) {
  read(out.block, in.getBlock(), "block");
  require_below(out.block.value(), limits::kMaxBlocks, "block");
  read(out.version, in.getVersion(), "version");
  if (in.hasTensor()) in_field("tensor", [&] { read_tensor(out, in.getTensor(), blobs); });
}

void write(schema::Actor::Builder out, Address in) {
  out.setKind(static_cast<std::uint8_t>(in.kind));
  out.setIndex(in.index);
}

void read(Address& out, schema::Actor::Reader in) {
  read_enum(out.kind, in.getKind(), RoleKind::host, "kind");
  out.index = in.getIndex();
  const bool is_shard = out.kind == RoleKind::shard || out.kind == RoleKind::standby;
  const std::uint32_t end = out.kind == RoleKind::worker ? limits::kMaxWorkers
                            : is_shard                   ? limits::kMaxShards
                                                         : 1;
  require_below(out.index, end, "index");
}

capnp::Data::Reader plain(const Message& in) {
  const auto words = in.header();
  return {reinterpret_cast<const kj::byte*>(words.data()), words.size_bytes()};
}

void read(Message& out, capnp::Data::Reader in, const char* field) {
  require(in.size() % sizeof(std::uint64_t) == 0, field, " has ", in.size(),
          " bytes, must be a multiple of 8");
  out = Message(in.size() / sizeof(std::uint64_t), {}, [&](std::span<std::uint64_t> words) {
    if (!words.empty()) std::memcpy(words.data(), in.begin(), in.size());
  });
}

Message message_of(capnp::MessageBuilder& builder, Blobs& blobs) {
  return Message(
      capnp::computeSerializedSizeInWords(builder), blobs, [&](std::span<std::uint64_t> header) {
        kj::ArrayOutputStream stream(
            kj::arrayPtr(reinterpret_cast<kj::byte*>(header.data()), header.size_bytes()));
        capnp::writeMessage(stream, builder);
      });
}

Status check_size(const Message& message) {
  const std::size_t bytes = message.header().size_bytes(), blobs = message.blobs().size();
  if (bytes > limits::kMaxHeaderBytes)
    return Error{concat("message header has ", bytes, " bytes, at most ", limits::kMaxHeaderBytes,
                        " are allowed")};
  if (blobs > limits::kMaxBlobs)
    return Error{
        concat("message has ", blobs, " blobs, at most ", limits::kMaxBlobs, " are allowed")};
  return {};
}

Error wrong_version(unsigned version) {
  return Error{concat("message has protocol version ", version, ", this program speaks ",
                      kProtocolVersion, "; use the same version of Leeway everywhere")};
}

}  // namespace leeway::wire
