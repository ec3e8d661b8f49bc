"""A whole store on an object store, and in memory: runs, cache, logs, verify, gc, several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from treadle.artifacts import Artifact, Store, open_store
from treadle.artifacts.gc import GarbageKind, find_garbage, remove_garbage
from treadle.artifacts.logs import read_log
from treadle.artifacts.verify import Problem, verify
from treadle.errors import ArtifactError
from treadle.execution import StepRunner, StepSpec

RUNNER = Path(__file__).with_name("remote_runner.py")
KINDS = ["memory", "s3", "s3 with a slash at the end", "s3 with spaces"]


def _prefix(kind: str, request: pytest.FixtureRequest) -> str:
    name = uuid4().hex
    if kind == "memory":
        return f"memory://{name}"
    bucket = request.getfixturevalue("s3")
    return {
        KINDS[1]: f"{bucket}/{name}",
        KINDS[2]: f"{bucket}/{name}/",
        KINDS[3]: f"{bucket}/my store/{name} ü",
    }[kind]


@pytest.fixture(params=["memory", "s3"])
def prefix(request: pytest.FixtureRequest) -> str:
    return _prefix(request.param, request)


@pytest.fixture
def store(prefix: str) -> Store:
    return open_store(prefix)


@pytest.fixture
def bucket(s3: str) -> str:
    """A prefix on S3 that other processes reach too."""
    return f"{s3}/{uuid4().hex}"


def put(path: str, text: str) -> None:
    with fsspec.open(path, "w") as file:
        file.write(text)


def get(path: str) -> str:
    with fsspec.open(path) as file:
        return str(file.read(), "utf-8")


class Toy:
    """A chain of two steps with files."""

    def __init__(self, prefix: str) -> None:
        self.ran: list[str] = []
        self.a = self.step("a", prefix)
        self.b = self.step("b", prefix, self.a)
        self.chain = [self.a, self.b]

    def step(self, name: str, prefix: str, *deps: StepSpec, text: str = "", **options: str) -> StepSpec:
        def fn(path: str) -> Artifact:
            self.ran.append(name)
            print(f"{name} at work")
            put(f"{path}/out.txt", text or name)
            put(f"{path}/deep/er.txt", text or name)
            return Artifact(path)

        return StepSpec(name, fn, deps, output_path_prefix=prefix, **options)  # type: ignore[arg-type]

    def run(self, *steps: StepSpec, force: tuple[str, ...] = ()) -> list[str]:
        """Run them, the chain by default; which bodies ran."""
        self.ran.clear()
        self.results = StepRunner().run(steps or self.chain, force=force)
        return self.ran


@pytest.fixture
def toy(prefix: str) -> Toy:
    return Toy(prefix)


@pytest.mark.parametrize("prefix", KINDS, indirect=True)
def test_a_run_is_cached_recorded_and_told(toy: Toy, store: Store) -> None:
    assert toy.run() == ["a", "b"]
    assert toy.run() == []
    assert get(toy.results[toy.b.id] / "deep/er.txt") == "b"
    record = store.record(toy.b.output_path)
    assert record is not None
    assert [(each.path, each.bytes) for each in record.head.files] == [("deep/er.txt", 1), ("out.txt", 1)]
    assert str(toy.results[toy.b.id]) == f"{toy.b.output_path}/{record.head.location}"
    assert "a at work" in read_log(store.prefix, store.place(toy.a.output_path))
    assert [each.outcome for each in store.ledger.attempts()] == ["done", "done"]
    assert list(verify(store)) == []
    assert find_garbage(store) == []


def test_an_object_that_is_gone_brings_its_step_back(toy: Toy, store: Store) -> None:
    toy.run()
    fs, path = fsspec.url_to_fs(str(toy.results[toy.a.id] / "out.txt"))
    fs.rm(path)
    assert [each.problem for each in verify(store)] == [Problem.MISSING]
    assert toy.run(toy.b) == [], "what it needs is not looked at when it is done"
    assert toy.run() == ["a", "b"]
    assert list(verify(store)) == []


def test_verify_tells_sizes_other_content_and_strangers(toy: Toy, store: Store) -> None:
    toy.run()
    folder = str(toy.results[toy.a.id])
    put(f"{folder}/out.txt", "x")
    put(f"{folder}/deep/er.txt", "longer")
    put(f"{folder}/new.txt", "x")
    expected = [(Problem.SIZE, "deep/er.txt"), (Problem.CHECKSUM, "out.txt"), (Problem.EXTRA, "new.txt")]
    if store.prefix.startswith("memory:"):  # which has no etags
        expected.pop(1)
    assert [(each.problem, each.path.removeprefix(f"{folder}/")) for each in verify(store)] == expected


def test_gc_removes_former_builds_and_dead_attempts_and_no_living_ones(toy: Toy, store: Store) -> None:
    toy.run()
    former = str(toy.results[toy.a.id])
    toy.run(toy.a, force=("a",))
    dead, living = f"{toy.b.output_path}/{'0' * 32}", f"{toy.a.output_path}/{'1' * 32}"
    put(f"{dead}/half.txt", "123")
    put(f"{store.prefix}/mine/notes.txt", "mine")
    found = find_garbage(store)
    assert {(each.kind, each.path, each.bytes) for each in found} == {
        (GarbageKind.FORMER, former, 2),
        (GarbageKind.FORMER, dead, 3),
    }
    claim = store.ledger.claim(store.place(toy.a.output_path), lambda: None)
    put(f"{living}/half.txt", "1")
    assert [each.path for each in find_garbage(store)] == [dead]
    assert remove_garbage(store, found) == 3
    store.ledger.release(claim)  # type: ignore[arg-type]
    assert remove_garbage(store, find_garbage(store)) == 3
    assert find_garbage(store) == []
    assert list(verify(store)) == []
    assert get(f"{store.prefix}/mine/notes.txt") == "mine"


def test_gc_with_keep_leaves_what_is_needed(toy: Toy, store: Store) -> None:
    toy.run()
    found = find_garbage(store, keep={toy.a.output_path})
    assert [(each.kind, each.bytes) for each in found] == [(GarbageKind.UNWANTED, 2)]
    assert remove_garbage(store, found) == 2
    assert store.record(toy.b.output_path) is None
    assert find_garbage(store, keep={toy.a.output_path}) == []
    assert toy.run() == ["b"]


def test_a_failed_body_leaves_no_objects(prefix: str, store: Store) -> None:
    def fn(path: str) -> None:
        put(f"{path}/half.txt", "x")
        raise ValueError("broken")

    step = StepSpec("a", fn, output_path_prefix=prefix)
    with pytest.raises(Exception, match="broken"):
        StepRunner().run([step])
    fs, root = fsspec.url_to_fs(step.output_path)
    assert fs.find(root) == []
    assert [each.outcome for each in store.ledger.attempts()] == ["failed"]


def test_a_local_store_and_a_remote_one_in_one_graph(toy: Toy, tmp_path: Path) -> None:
    def fn(path: str) -> str:
        Path(path, "x").touch()
        return path

    near = StepSpec("near", fn, [toy.b], output_path_prefix=str(tmp_path / "store"))
    assert toy.run(near) == ["a", "b"]
    assert toy.results[near.id] == near.output_path
    assert toy.run(near, *toy.chain) == []


@pytest.mark.parametrize("kind", ["memory", "s3"])
def test_a_step_of_a_local_store_may_have_its_place_on_an_object_store(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    local, place = str(tmp_path / "store"), f"{_prefix(kind, request)}/out"
    toy = Toy(local)
    step = toy.step("c", local, override_output_path=place)
    assert toy.run(step) == ["c"]
    assert str(toy.results[step.id]).startswith(f"{place}/")
    assert get(toy.results[step.id] / "out.txt") == "c"
    assert toy.run(step) == []
    assert list(verify(open_store(local))) == []
    assert [each.name for each in tmp_path.iterdir()] == ["store"]


def test_a_step_of_a_remote_store_may_have_its_place_on_the_disk(
    toy: Toy, prefix: str, tmp_path: Path
) -> None:
    place = tmp_path / "out"

    def fn(path: str) -> str:
        toy.ran.append("c")
        Path(path).mkdir(parents=True, exist_ok=True)
        Path(path, "x").write_text("x")
        return path

    step = StepSpec("c", fn, output_path_prefix=prefix, override_output_path=str(place))
    assert toy.run(step) == ["c"]
    assert Path(toy.results[step.id], "x").read_text() == "x"
    assert toy.run(step) == []
    assert list(verify(open_store(prefix))) == []
    Path(toy.results[step.id], "x").unlink()
    assert toy.run(step) == ["c"]


def test_a_copy_of_a_store_serves_its_own_files(bucket: str) -> None:
    toy, copy = Toy(bucket), f"{bucket}-copy"
    toy.run()
    fs, root = fsspec.url_to_fs(bucket)
    fs.copy(root, fsspec.url_to_fs(copy)[1], recursive=True)
    fs.rm(root, recursive=True)
    fs.invalidate_cache()
    there = Toy(copy)
    assert there.run() == []
    assert get(there.results[there.a.id] / "out.txt") == "a"
    assert str(there.results[there.b.id]).startswith(f"{copy}/b/")
    assert str(there.results.outcomes[there.b.id].outcome.value).startswith(f"{copy}/b/")  # type: ignore[union-attr]
    assert list(verify(open_store(copy))) == []


@pytest.mark.parametrize("content", ["", "{}", "not json", '{"format": 99}', None])
def test_a_build_of_the_ledger_that_is_damaged_is_told_and_never_served(
    bucket: str, content: str | None
) -> None:
    toy, store = Toy(bucket), open_store(bucket)
    toy.run()
    place = store.place(toy.a.output_path)
    build = f"{bucket}/.treadle/places/{place}/@/build-00000001.json"
    put(build, get(build).replace("a-", "b-") if content is None else content)
    with pytest.raises(ArtifactError, match=rf"{bucket}.*({place}|newer treadle)"):
        toy.run()
    assert [(each.place, each.problem) for each in verify(store)] == [(place, Problem.RECORD)]
    assert find_garbage(store, keep={toy.b.output_path}) == []
    store.forget(toy.a.output_path)
    assert toy.run() == ["a", "b"]
    assert list(verify(store)) == []


# Several processes


@contextmanager
def runner(bucket: str, held: str = "") -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    environment = {**os.environ, "TREADLE_LEASE_SECONDS": "60"}
    command = [sys.executable, str(RUNNER), bucket, held]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def heard(process: subprocess.Popen[str], word: str) -> str:
    """The next line of that process that has this in it."""
    assert process.stdout is not None
    return next(line for line in process.stdout if word in line)


def told_to_go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def runs(bucket: str) -> Counter[str]:
    """How often the body of each step was called."""
    fs, root = fsspec.url_to_fs(f"{bucket}-ran")
    fs.invalidate_cache()
    return Counter(path.rpartition("/")[2][0] for path in fs.find(root))


DONE = "done ['a', 'b', 'c', 'd', 'e', 'f']\n"


def test_two_runners_on_one_bucket_run_each_step_once(bucket: str) -> None:
    with runner(bucket, "a") as first:
        heard(first, "at work")
        with runner(bucket) as second:
            heard(second, "waiting")
            told_to_go_on(first)
            assert heard(first, "done") == heard(second, "done") == DONE
    assert runs(bucket) == Counter("abcdef")
    assert list(verify(open_store(bucket))) == []
    assert find_garbage(open_store(bucket)) == []


def test_what_a_killed_runner_had_is_taken_over_at_once(bucket: str) -> None:
    """Its lease would last for a minute, but its process is known to be gone."""
    with runner(bucket, "a") as first:
        heard(first, "at work")
        with runner(bucket) as second:
            heard(second, "waiting")
            first.send_signal(signal.SIGKILL)
            assert heard(second, "done") == DONE
    assert runs(bucket) == Counter("aabcdef")
    store = open_store(bucket)
    assert list(verify(store)) == []
    assert [(each.kind, each.bytes) for each in find_garbage(store)] == [(GarbageKind.FORMER, len("half"))]
    assert remove_garbage(store, find_garbage(store)) == len("half")
    assert list(verify(store)) == []
