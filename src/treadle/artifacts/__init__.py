"""What steps leave behind: identities, records, values, and where they lie."""

from treadle.artifacts.artifact import Artifact
from treadle.artifacts.code_hash import code_hash
from treadle.artifacts.fingerprint import canonical, fingerprint
from treadle.artifacts.json_form import Json, type_name
from treadle.artifacts.prefix import find_prefix, is_url, join
from treadle.artifacts.record import FileEntry, Record, RecordBody, RecordHead
from treadle.artifacts.store import Store, missing_record
from treadle.artifacts.stores import close_store, heads, open_store
from treadle.artifacts.value import decode_value, encode_value

__all__ = [
    "Artifact",
    "FileEntry",
    "Json",
    "Record",
    "RecordBody",
    "RecordHead",
    "Store",
    "canonical",
    "close_store",
    "code_hash",
    "decode_value",
    "encode_value",
    "find_prefix",
    "fingerprint",
    "heads",
    "is_url",
    "join",
    "missing_record",
    "open_store",
    "type_name",
]
