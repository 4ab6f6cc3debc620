"""Files of the recorder's own MCAP writer, as the library reads them; images that any decoder reads."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
import pytest
import synthetic
from foxglove_schemas_protobuf.CompressedImage_pb2 import CompressedImage
from mcap.reader import McapReader, NonSeekingReader, SeekingReader, make_reader
from mcap.records import Attachment
from numpy.typing import NDArray
from PIL import Image as Pillow
from raising import raises_naming

from robot_runtime.actions.timed import Control, VelocityControl
from robot_runtime.errors import RecordingError
from robot_runtime.hal import RgbdFrame
from robot_runtime.recording.channels import STREAMED_COLOR
from robot_runtime.recording.durable_file import DurableFile
from robot_runtime.recording.images import decode_rgb, encode_png, encode_rgb
from robot_runtime.recording.log_writer import LogWriter
from robot_runtime.recording.mcap_scan import LogFile
from robot_runtime.recording.mcap_writer import McapWriter
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.recover import recover
from robot_runtime.recording.ros2_messages import Image
from robot_runtime.records import EpisodeEnd, EpisodeHeader, StepRecord

NOISE = np.random.default_rng(0).integers(0, 256, 300_000, np.uint8)


@pytest.fixture
def file(tmp_path: Path) -> BytesIO:
    """Two chunks, the second one not compressed, with all that a log has beside them."""
    sink = DurableFile(tmp_path / "file.mcap", sync_s=1.0)
    writer = McapWriter(sink)
    writer.start()
    writer.add_metadata("provenance", {"host": "here"})
    writer.add_attachment(Attachment(create_time=0, log_time=5, name="map", media_type="x/y", data=b"M" * 9))
    schema = writer.register_schema("S", "jsonschema", b"{}")
    one, two = (writer.register_channel(topic, "json", schema) for topic in ("/one", "/two"))
    writer.add_message(one, 30, 31, 7, [b"ab", memoryview(b"cd")])
    writer.end_chunk()
    writer.end_chunk()  # without messages there is no chunk
    writer.add_message(two, 20, 20, 0, [b"x" * 1000])
    writer.add_message(one, 10, 10, 8, [])
    writer.end_chunk(compress=False)
    writer.finish()
    sink.close()
    return BytesIO((tmp_path / "file.mcap").read_bytes())


@pytest.mark.parametrize("reader", [SeekingReader, NonSeekingReader])
def test_the_library_reads_it_with_its_checksums(file: BytesIO, reader: type[McapReader]) -> None:
    def opened() -> McapReader:
        return reader(BytesIO(file.getvalue()), validate_crcs=True)

    found = [
        (channel.topic, one.log_time, one.publish_time, one.sequence, one.data)
        for _, channel, one in opened().iter_messages()
    ]
    assert found == [("/one", 10, 10, 8, b""), ("/two", 20, 20, 0, b"x" * 1000), ("/one", 30, 31, 7, b"abcd")]
    assert [one.data for one in opened().iter_attachments()] == [b"M" * 9]
    assert [one.metadata for one in opened().iter_metadata()] == [{"host": "here"}]


def test_its_summary_states_what_is_in_it(file: BytesIO) -> None:
    summary = SeekingReader(file, validate_crcs=True).get_summary()
    assert summary is not None
    assert summary.statistics is not None
    assert summary.statistics.channel_message_counts == {1: 2, 2: 1}
    assert (summary.statistics.message_start_time, summary.statistics.message_end_time) == (10, 30)
    assert summary.statistics.chunk_count == 2
    assert [chunk.compression for chunk in summary.chunk_indexes] == ["zstd", ""]
    assert len(summary.attachment_indexes) == len(summary.metadata_indexes) == 1
    assert sorted(channel.topic for channel in summary.channels.values()) == ["/one", "/two"]


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 5, 3), (300, 333, 3), (2, 30_000, 3)], ids=str)
def test_other_decoders_read_the_images(shape: tuple[int, int, int]) -> None:
    rgb = NOISE[: np.prod(shape)].reshape(shape)
    png = b"".join(encode_png(rgb))
    decoded: NDArray[np.uint8] | None = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None
    assert np.array_equal(decoded[..., ::-1], rgb)
    with Pillow.open(BytesIO(png)) as image:
        assert np.array_equal(np.asarray(image), rgb)


@pytest.mark.parametrize("shape", [(1, 1, 3), (4, 9, 3), (60, 80, 3), (300, 333, 3)], ids=str)
def test_a_color_message_is_one_of_foxglove(shape: tuple[int, int, int]) -> None:
    rgb = NOISE[: np.prod(shape)].reshape(shape)
    data = b"".join(encode_rgb(RgbdFrame(1_500_000_000, rgb, np.zeros(shape[:2], np.float32))))
    message = CompressedImage.FromString(data)
    assert (message.format, message.timestamp.nanos, message.frame_id) == ("png", 500_000_000, "camera")
    assert np.array_equal(decode_rgb(data), rgb)


def test_a_view_of_a_larger_image_is_encoded() -> None:
    rgb = NOISE.reshape(100, 1000, 3)[::2, 7:500:3]
    assert np.array_equal(decode_rgb(b"".join(encode_rgb(RgbdFrame(0, rgb, np.zeros((50, 165), np.float32))))), rgb)


def streaming(width: int, height: int) -> EpisodeHeader:
    """Header of a task whose policy gives 30 velocities per second."""
    velocity = VelocityControl((0.0, 0.25), (-1.0, 1.0), (0.0, 0.0), 1 / 30)
    return synthetic.header(synthetic.pointnav_task(width, height, control=Control((0.0, 0.0), velocity)))


def image_compressions(path: Path) -> list[bytes]:
    """Compressions of the chunks that are larger than what is beside the images."""
    log = LogFile(path)
    contents = [log.content(one.span) for one in log.chunks[1:]]
    log.close()
    found = []
    for content in contents:
        length = int.from_bytes(content[28:32], "little")
        if int.from_bytes(content[16:24], "little") > 20_000:
            found.append(content[32 : 32 + length])
    return found


def write(path: Path, header: EpisodeHeader, steps: Sequence[StepRecord], end: EpisodeEnd) -> Path:
    log = LogWriter(path, header)
    log.write_header()
    for step in steps:
        log.write_step(step)
    log.write_end(end)
    log.finish()
    log.close()
    return path


@pytest.mark.parametrize("streams", [True, False])
def test_a_stream_is_not_compressed_until_the_log_is_copied(tmp_path: Path, streams: bool) -> None:
    header = streaming(160, 120) if streams else synthetic.header(synthetic.pointnav_task(160, 120))
    steps = synthetic.drive(header, [synthetic.FORWARD] * 2)
    path = write(tmp_path / "log.mcap", header, steps, synthetic.end_of(steps))
    assert image_compressions(path) == [b"" if streams else b"zstd"] * 3
    copy = tmp_path / "copy.mcap"
    recover(path, copy)
    assert image_compressions(copy) == [b"zstd"] * 3
    for one in (path, copy):
        with LogReader(one) as log:
            read = list(log.steps(verify=True))
        for found, step in zip(read, steps, strict=True):
            assert np.array_equal(found.frame.rgb, step.frame.rgb)
            assert np.array_equal(found.frame.depth_m, step.frame.depth_m)


def test_color_of_a_stream_has_the_schema_that_viewers_show(tmp_path: Path) -> None:
    header = streaming(16, 12)
    steps = synthetic.drive(header, [])
    path = write(tmp_path / "log.mcap", header, steps, synthetic.end_of(steps))
    with path.open("rb") as file:
        ((schema, channel, message),) = make_reader(file, validate_crcs=True).iter_messages([STREAMED_COLOR.topic])
    assert schema is not None
    assert (schema.name, schema.encoding, channel.message_encoding) == ("sensor_msgs/msg/Image", "ros2msg", "cdr")
    image = Image.from_bytes(message.data)
    assert (image.width, image.height, image.step, image.encoding) == (16, 12, 48, "rgb8")
    assert image.data == steps[0].frame.rgb.tobytes()


@pytest.mark.parametrize(("encoding", "size"), [("bgr8", 36), ("rgb8", 35), ("rgb8", 3)])
def test_pixels_that_are_no_color_image_are_refused(encoding: str, size: int) -> None:
    data = Image(0, "camera", 4, 3, encoding, 9, bytes(size)).to_bytes()
    with pytest.raises(ValueError, match=r"color image|reshape"):
        decode_rgb(data)


@pytest.mark.parametrize("streams", [True, False])
def test_a_spoilt_image_is_noticed_also_in_a_stream_by_what_the_policy_saw(tmp_path: Path, streams: bool) -> None:
    header = streaming(160, 120) if streams else synthetic.header(synthetic.pointnav_task(160, 120))
    steps = synthetic.drive(header, [synthetic.FORWARD])
    path = write(tmp_path / "log.mcap", header, steps, synthetic.end_of(steps))
    log = LogFile(path)
    images, step = (one.span for one in log.chunks[1:3])
    log.close()
    data = path.read_bytes()
    for span, named in ((images, "the policy was given" if streams else "damaged"), (step, "damaged")):
        spoilt = bytearray(data)
        spoilt[span.offset + span.length // 2] ^= 1
        path.write_bytes(bytes(spoilt))
        with LogReader(path) as read, raises_naming(RecordingError, "log.mcap", named):
            list(read.steps())


def test_many_parts_are_written_in_order(tmp_path: Path) -> None:
    parts = [bytes([number % 251]) * (number % 7) for number in range(5000)]
    file = DurableFile(tmp_path / "file", sync_s=1.0)
    assert file.write(*parts) == file.tell() == len(b"".join(parts))
    file.close()
    assert (tmp_path / "file").read_bytes() == b"".join(parts)


def test_compressed_images_take_as_much_room_as_with_their_own_compression(tmp_path: Path) -> None:
    rows, columns = np.mgrid[:480, :640]
    smooth = 128 + 50 * np.sin(rows / 40) + 50 * np.cos(columns / 60)
    noise = np.random.default_rng(0).normal(0, 1.5, (480, 640, 3))
    rgb = np.clip(smooth[..., None] + noise, 0, 255).astype(np.uint8)
    _, png = cv2.imencode(".png", rgb)
    file = DurableFile(tmp_path / "file.mcap", sync_s=1.0)
    writer = McapWriter(file)
    channel = writer.register_channel("/color", "protobuf", 0)
    writer.add_message(channel, 0, 0, 0, encode_rgb(RgbdFrame(0, rgb, np.zeros((480, 640), np.float32))))
    writer.end_chunk()
    file.close()
    assert file.tell() < 1.1 * len(png)
