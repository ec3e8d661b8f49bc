"""Whether a folder lies on a disk that several machines share.

SQLite's write-ahead log needs memory that all its users share, so on such a disk it would damage itself.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePath

_SHARED = frozenset(
    ("9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs", "gfs2", "gpfs", "lustre", "ncpfs", "nfs", "nfs4")
) | {"ocfs2", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs"}


def is_shared_by_machines(folder: str, mounts: Path = Path("/proc/mounts")) -> bool:
    """Whether the folder, which need not exist yet, lies on a network file system; False where unknown."""
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    return is_shared_kind(kind_of_file_system(os.path.realpath(folder), table))


def is_shared_kind(kind: str) -> bool:
    """Whether a file system of that kind, as the mount table names it, is shared by machines."""
    # What a user's program serves (fuse) may be anything, and is mostly remote.
    return kind in _SHARED or kind.startswith("fuse.")


def kind_of_file_system(folder: str, table: str) -> str:
    """The kind of the file system that the innermost, latest mount around the folder has; else empty."""
    path = PurePath(folder)
    best, kind = -1, ""
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) > 2 and path.is_relative_to(mount := _unescaped(fields[1])):
            depth = len(PurePath(mount).parts)
            if depth >= best:
                best, kind = depth, fields[2]
    return kind


def _unescaped(path: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path
