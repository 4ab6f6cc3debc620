"""Edits of recorded logs, as a stranger or a broken disk makes them: messages changed, dropped, repeated, moved."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcap.opcode import Opcode
from mcap.records import Attachment, Channel, Message, Metadata, Schema

from robot_runtime.recording.durable_file import DurableFile
from robot_runtime.recording.integrity import Chain, attachment_parts
from robot_runtime.recording.mcap_scan import LogFile
from robot_runtime.recording.mcap_writer import McapWriter

Entry = tuple[str, Message]
"""Topic and message."""

CHAINED = ("/episode", "/step", "/end")


class LogEdit:
    """The content of a log, to be changed and written again.

    Attributes:
        entries: messages in file order.
        attachments: contents of the attachments by name.
    """

    def __init__(self, path: Path) -> None:
        file = LogFile(path)
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}
        self._metadata: list[Metadata] = []
        self.entries: list[Entry] = []
        self.attachments: dict[str, bytes] = {}
        for span in file.spans:
            if span.opcode == Opcode.METADATA:
                self._metadata.append(file.record(span, Metadata.read))
            elif span.opcode == Opcode.ATTACHMENT:
                attachment = file.record(span, Attachment.read)
                self.attachments[attachment.name] = attachment.data
            elif span.opcode == Opcode.CHUNK:
                for record in file.chunk(span, schemas=True):
                    if isinstance(record, Schema):
                        self._schemas[record.id] = record
                    elif isinstance(record, Channel):
                        self._channels[record.id] = record
                    elif isinstance(record, Message):
                        self.entries.append((self._channels[record.channel_id].topic, record))
        file.close()

    def numbers(self, topic: str) -> list[int]:
        """Places of a topic's messages in ``entries``."""
        return [number for number, (name, _) in enumerate(self.entries) if name == topic]

    def change(self, topic: str, number: int, edit: Callable[[dict[str, Any]], None]) -> None:
        """Change the JSON of a topic's message in place; its chain stays as it is stated."""
        place = self.numbers(topic)[number]
        data = json.loads(self.entries[place][1].data)
        edit(data)
        self.put(place, json.dumps(data, separators=(",", ":")).encode())

    def change_metadata(self, name: str, texts: dict[str, str]) -> None:
        """Change texts of a metadata record."""
        self._metadata = [
            replace(record, metadata=record.metadata | texts) if record.name == name else record
            for record in self._metadata
        ]

    def put(self, place: int, data: bytes) -> None:
        """Replace a message's data."""
        topic, message = self.entries[place]
        self.entries[place] = topic, replace(message, data=data)

    def unchain(self) -> None:
        """Remove the chain, as in an older log."""
        for place, (topic, message) in enumerate(self.entries):
            if topic in CHAINED:
                self.put(place, re.sub(rb',"chain":"[0-9a-f]*"', b"", message.data))

    def chain_again(self) -> None:
        """Compute the chain anew, as a forger would."""
        self.unchain()
        chain, objects = Chain(), []
        for place, (topic, message) in enumerate(self.entries):
            if topic == "/objects":
                objects.append(message.data)
            if topic in CHAINED:
                others = attachment_parts(self.attachments) if topic == "/episode" else objects
                self.put(place, chain.append(message.data, others))
                objects = []

    def write(self, path: Path) -> Path:
        """Write a whole log, and return its path."""
        path.unlink(missing_ok=True)
        file = DurableFile(path, sync_s=1.0)
        writer = McapWriter(file)
        writer.start()
        for metadata in self._metadata:
            writer.add_metadata(metadata.name, metadata.metadata)
        for name, data in self.attachments.items():
            writer.add_attachment(Attachment(create_time=0, log_time=0, name=name, media_type="", data=data))
        self._write_messages(writer, self.entries)
        writer.finish()
        file.close()
        return path

    def _write_messages(self, writer: McapWriter, entries: Iterable[Entry]) -> None:
        ids = {}
        for channel in self._channels.values():
            schema = self._schemas[channel.schema_id]
            number = writer.register_schema(schema.name, schema.encoding, schema.data)
            ids[channel.topic] = writer.register_channel(channel.topic, channel.message_encoding, number)
        for topic, message in entries:
            writer.add_message(ids[topic], message.log_time, message.publish_time, message.sequence, [message.data])
            # Chunks end where the recorder ends them: after the header's last message, images, and steps.
            if topic in ("/camera/camera_info", "/camera/depth", "/step", "/end"):
                writer.end_chunk()
