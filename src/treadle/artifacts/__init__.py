"""What steps leave behind: identities, records, values, and where they lie."""

from treadle.artifacts.artifact import Artifact
from treadle.artifacts.code_hash import code_hash
from treadle.artifacts.fingerprint import Json, canonical, fingerprint, type_name
from treadle.artifacts.prefix import find_prefix
from treadle.artifacts.record import RECORD_NAME, FileEntry, Record, read_record, write_record
from treadle.artifacts.value import decode_value, encode_value

__all__ = [
    "RECORD_NAME",
    "Artifact",
    "FileEntry",
    "Json",
    "Record",
    "canonical",
    "code_hash",
    "decode_value",
    "encode_value",
    "find_prefix",
    "fingerprint",
    "read_record",
    "type_name",
    "write_record",
]
