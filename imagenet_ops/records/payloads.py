"""What a record's payload says of itself, read and rewritten in place: all its other bytes stay as they are."""

from __future__ import annotations

import struct

_RECORD_ID = struct.Struct("<Q")
_RECORD_ID_OFFSET = 8


def read_record_id(payload: bytes) -> int:
    (record_id,) = _RECORD_ID.unpack_from(payload, _RECORD_ID_OFFSET)
    return int(record_id)


def replace_record_id(payload: bytes, record_id: int) -> bytes:
    end = _RECORD_ID_OFFSET + _RECORD_ID.size
    return payload[:_RECORD_ID_OFFSET] + _RECORD_ID.pack(record_id) + payload[end:]
