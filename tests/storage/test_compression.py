from __future__ import annotations

import gzip
from pathlib import Path

import fsspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.storage.compression import OutputStream, codec_of, open_stream, read_full, without_codec

SUFFIX = {"none": "", "gzip": ".gz", "zstd": ".zst"}


def written(path: Path, codec: str, pieces: list[bytes]) -> bytes:
    path.unlink(missing_ok=True)
    stream = OutputStream(path, codec)
    for each in pieces:
        stream.write(each)
    stream.close()
    return path.read_bytes()


def content_of(path: Path, size: int = 1000) -> tuple[bytes, str | None]:
    """What a file gives, and why that is not all."""
    with open_stream(str(path)) as stream:
        blocks = list(iter(lambda: read_full(stream, size), b""))
        assert all(len(each) == size for each in blocks[:-1])
        assert stream.read(size) == b""
        return b"".join(blocks), stream.broken


@settings(max_examples=40)
@given(
    codec=st.sampled_from(sorted(SUFFIX)),
    pieces=st.lists(st.binary(max_size=2000) | st.just(b"x" * 5000), max_size=5),
    size=st.integers(1, 700),
)
def test_what_was_written_is_read_again_and_has_the_same_bytes_each_time(
    tmp_path_factory: pytest.TempPathFactory, codec: str, pieces: list[bytes], size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / f"again{SUFFIX[codec]}"
    first = written(path, codec, pieces)
    assert content_of(path, size) == (b"".join(pieces), None)
    assert written(path, codec, pieces) == first


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_streams_one_after_the_other_are_one_file(tmp_path: Path, suffix: str) -> None:
    """Tools append to logs, and join shards, in this way."""
    pack = gzip.compress if suffix == ".gz" else zstandard.compress
    path = tmp_path / f"a{suffix}"
    path.write_bytes(pack(b"one\n") + pack(b"") + pack(b"two\n" * 1000))
    assert content_of(path) == (b"one\n" + b"two\n" * 1000, None)


def test_zeros_after_a_gzip_stream_are_padding(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one") + bytes(600_000) + gzip.compress(b"two") + bytes(100))
    assert content_of(path) == (b"onetwo", None)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_damaged_stream_gives_what_comes_before_the_damage(tmp_path: Path, suffix: str) -> None:
    """An error of a decompressor throws away the output of its call; here none of it is lost."""
    text = b"".join(b"%d %d\n" % (n, n**9) for n in range(30_000))
    packed = gzip.compress(text) if suffix == ".gz" else zstandard.compress(text)
    path = tmp_path / f"a{suffix}"
    for share in (0.3, 0.9):
        path.write_bytes(packed[: int(len(packed) * share)])
        content, broken = content_of(path, 4096)
        assert text.startswith(content)
        # A block of zstd is 128 KiB, of which nothing is known before its end.
        assert len(content) > len(text) * share - 2**18
        assert broken is not None
        assert "breaks here" in broken


def test_the_suffix_tells_the_compression() -> None:
    assert [codec_of(f"s3://b/a.jsonl{each}") for each in SUFFIX.values()] == list(SUFFIX)
    assert {without_codec(f"b.gz/a.jsonl{each}") for each in SUFFIX.values()} == {"b.gz/a.jsonl"}


def test_a_stream_without_compression_can_begin_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    with open_stream(str(path), 7) as stream:
        assert read_full(stream, 100) == b"789"


def test_files_of_other_systems_are_read(tmp_path: Path) -> None:
    with fsspec.open("memory://compression/a.gz", "wb") as file:
        file.write(gzip.compress(b"far away"))
    with open_stream("memory://compression/a.gz") as stream:
        assert read_full(stream, 100) == b"far away"


@pytest.mark.parametrize("codec", sorted(SUFFIX))
def test_an_existing_file_is_not_overwritten(tmp_path: Path, codec: str) -> None:
    (tmp_path / "a").write_bytes(b"kept")
    with pytest.raises(FileExistsError):
        OutputStream(tmp_path / "a", codec)
    assert (tmp_path / "a").read_bytes() == b"kept"


@pytest.mark.parametrize("codec", sorted(SUFFIX))
def test_an_abandoned_file_is_left_for_its_owner_to_remove(tmp_path: Path, codec: str) -> None:
    """And letting go twice, or after the end, harms nothing."""
    stream = OutputStream(tmp_path / "a", codec)
    stream.write(b"x")
    stream.abandon()
    stream.abandon()
    assert (tmp_path / "a").exists()
