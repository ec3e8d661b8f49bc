"""Includes: order of precedence, what is refused, and how the way to a file is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from treadle.errors import ManifestError, Problem
from treadle.manifest.include import MAX_FILES, gather
from treadle.manifest.places import find, plain
from treadle.manifest.problems import Problems
from treadle.manifest.source import MAX_BYTES
from treadle.manifest.yaml_loader import MAX_DEPTH


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths keep the messages short and the same everywhere."""
    monkeypatch.chdir(tmp_path)


def write_files(**files: str) -> None:
    """`a__b` is the file `a/b.yaml`."""
    for name, text in files.items():
        path = Path(f"{name.replace('__', '/')}.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def gathered(path: str = "m.yaml") -> object:
    problems = Problems()
    tree = gather(path, problems)
    problems.raise_any()
    assert tree is not None
    return plain(tree)


def refusals(path: str = "m.yaml") -> tuple[Problem, ...]:
    with pytest.raises(ManifestError) as caught:
        gathered(path)
    return caught.value.problems


def test_later_includes_win_and_own_keys_win_over_all() -> None:
    """The nearer a value is written, the more it counts."""
    write_files(
        m="include: [a.yaml, b.yaml]\nx: {own: m}\n",
        a="x: {own: a, later: a, first: a}\n",
        b="x: {own: b, later: b}\n",
    )
    assert gathered() == {"x": {"own": "m", "later": "b", "first": "a"}}


def test_an_include_can_be_put_under_a_section() -> None:
    """A fragment need not know where it will stand."""
    write_files(m="include: [{path: a.yaml, at: metrics.sinks}]\n", a="log: x\n")
    assert gathered() == {"metrics": {"sinks": {"log": "x"}}}


def test_an_include_of_an_include_is_relative_to_its_own_file() -> None:
    """A folder of fragments can be moved as a whole."""
    write_files(m="include: [parts/a.yaml]\n", parts__a="include: [b.yaml]\na: 1\n", parts__b="b: 2\n")
    assert gathered() == {"a": 1, "b": 2}


def test_values_keep_the_place_and_the_way_of_the_file_they_came_from() -> None:
    """An error found later must point into the fragment, not at the include."""
    write_files(m="x: 1\ninclude:\n  - a.yaml\n", a="include: [b.yaml]\n", b="y:\n  z: 2\n")
    tree = gather("m.yaml", Problems())
    assert tree is not None
    entry = find(tree, ("y", "z"))
    assert entry is not None
    place = entry.node.place
    assert (place.file, place.line, place.column) == ("b.yaml", 2, 6)
    assert place.chain == ("a.yaml:1", "m.yaml:3")


def test_a_cycle_is_printed_as_a_path() -> None:
    """Whoever reads it must see which include to remove."""
    write_files(m="include: [a.yaml]\n", a="include: [b.yaml]\n", b="x: 1\ninclude: [a.yaml]\n")
    [problem] = refusals()
    assert problem.found == "a.yaml -> b.yaml -> a.yaml"
    assert (problem.file, problem.line, problem.column, problem.field) == ("b.yaml", 2, 11, "include[0]")
    assert problem.include_chain == ("a.yaml:1", "m.yaml:1")


def test_a_file_that_includes_itself_is_a_cycle() -> None:
    """Also under another spelling of its name, and through a link."""
    write_files(m="include: [./m.yaml, link.yaml]\n")
    Path("link.yaml").symlink_to("m.yaml")
    assert [each.found for each in refusals()] == ["m.yaml -> m.yaml", "m.yaml -> link.yaml"]


def test_two_ways_to_one_file_are_no_cycle() -> None:
    """A shared fragment is ordinary; its problems are told once."""
    write_files(m="include: [a.yaml, b.yaml]\n", a="include: [c.yaml]\n", b="include: [c.yaml]\n", c="x: 1\n")
    assert gathered() == {"x": 1}
    write_files(c="x: 1\nx: 2\n")
    assert len(refusals()) == 1


def test_sections_that_includes_open_add_up_to_a_bound() -> None:
    """Each file is shallow; what they make together must not end in a RecursionError."""
    at = ".".join("a" * 20)
    write_files(r4="x: 1\n", r3="x: 1\n")
    for rung in range(3):
        write_files(**{f"r{rung}": f"include: [{{path: r{rung + 1}.yaml, at: {at}}}]\n"})
    [problem] = refusals("r0.yaml")
    assert (problem.file, problem.expected) == ("r2.yaml", f"at most {MAX_DEPTH} levels of at")


def test_a_ladder_of_diamonds_ends() -> None:
    """Thirty files can stand for a thousand million reads."""
    for rung in range(30):
        write_files(**{f"r{rung}": f"include: [r{rung + 1}.yaml, r{rung + 1}.yaml]\n"})
    write_files(r30="x: 1\n")
    assert {each.expected for each in refusals("r0.yaml")} == {f"at most {MAX_FILES} files in all"}


def test_a_missing_include_names_the_nearest_file() -> None:
    """A typing error is the usual reason."""
    write_files(m="include:\n  - parts/storge.yaml\n", parts__storage="x: 1\n")
    [problem] = refusals()
    assert str(problem) == (
        "m.yaml:2:5: include[0]: expected an existing file, found 'parts/storge.yaml'; "
        "did you mean 'storage.yaml'?"
    )


@pytest.mark.parametrize(
    "path", ["gone/a.yaml", "loop.yaml", "x" * 5000, f"{'x' * 500}/a.yaml", '"a\\0b.yaml"', '""']
)
def test_a_path_that_leads_nowhere_is_a_problem_and_no_crash(path: str) -> None:
    """Whatever the operating system says of a path, the answer names the include."""
    Path("loop.yaml").symlink_to("loop.yaml")
    write_files(m=f"include: [{path}]\n")
    assert [each.field for each in refusals()] == ["include[0]" if path != '""' else ""]


@pytest.mark.parametrize("path", ["../secret.yaml", "/etc/hostname", "parts/../../secret.yaml", "link.yaml"])
def test_an_include_stays_inside_the_folder_of_the_manifest(path: str, tmp_path: Path) -> None:
    """A manifest from elsewhere must not read the rest of the disk, not even through a link."""
    (tmp_path / "job").mkdir()
    (tmp_path / "secret.yaml").write_text("x: 1\n")
    (tmp_path / "job/link.yaml").symlink_to("../secret.yaml")
    (tmp_path / "job/m.yaml").write_text(f"include: [{path}]\n")
    [problem] = refusals("job/m.yaml")
    assert problem.expected == f"a file inside {tmp_path / 'job'}"
    assert problem.found == repr(path)


@pytest.mark.parametrize(
    ("text", "field", "expected", "found"),
    [
        ("include: a.yaml\n", "include", "a list of files", "'a.yaml'"),
        ("include: [3]\n", "include[0]", "a path, or a mapping of path and at", "3"),
        ("include: [{at: x}]\n", "include[0].path", "text", "nothing"),
        ("include: [{path: a.yaml, at: [x]}]\n", "include[0].at", "text", "a list"),
        (
            "include: [{path: a.yaml, at: x, as: y}]\n",
            "include[0].as",
            "one of at, path",
            "the unknown key 'as'",
        ),
    ],
)
def test_a_malformed_include_is_refused(text: str, field: str, expected: str, found: str) -> None:
    """What is not understood must not be skipped."""
    write_files(m=text, a="y: 1\n")
    [problem] = refusals()
    assert (problem.field, problem.expected, problem.found) == (field, expected, found)


def test_every_unreadable_file_is_told_at_once_in_order_of_place() -> None:
    """One round of repairs must be enough; the manifest's own problems come first."""
    write_files(m="include: [b.yaml, a.yaml, gone.yaml, empty.yaml, list.yaml]\nx: 1\nx: 2\n")
    write_files(a="a: [\n", empty="", list="- 1\n")
    Path("b.yaml").write_bytes("grün: Größe\nß: ".encode() + b"\xff\n")
    assert [(each.file, each.line, each.column, each.found) for each in refusals()] == [
        ("m.yaml", 1, 27, "'gone.yaml'"),
        ("m.yaml", 3, 1, "'x' again (first on line 2)"),
        ("a.yaml", 2, 1, "an error: did not find expected node content (while parsing a flow node, line 2)"),
        ("b.yaml", 2, 4, "byte 0xff"),
        ("empty.yaml", 1, 1, "an empty document"),
        ("list.yaml", 1, 1, "a list"),
    ]


@pytest.mark.parametrize(
    ("raw", "place", "expected", "found"),
    [
        (b"\xff\xfea\x00", (1, 1), "UTF-8 text", "byte 0xff"),
        (b"a: b\nc: \x00\n", (2, 4), "printable text", "the character U+0000"),
        (b"a: " + b"x" * MAX_BYTES, (1, 1), f"a file of at most {MAX_BYTES:,} bytes", "a larger one"),
    ],
)
def test_a_file_that_is_no_text_is_refused(
    raw: bytes, place: tuple[int, int], expected: str, found: str
) -> None:
    """Guessing an encoding would bend names in silence."""
    Path("m.yaml").write_bytes(raw)
    [problem] = refusals()
    assert ((problem.line, problem.column), problem.expected, problem.found) == (place, expected, found)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    """Editors of one system write it; the first key must not start with it, nor places move."""
    Path("m.yaml").write_bytes(b"\xef\xbb\xbfx: 1\n")
    assert gathered() == {"x": 1}
    Path("m.yaml").write_bytes(b"\xef\xbb\xbfx: \xff\n")
    assert refusals()[0].column == 4


def test_a_missing_manifest_and_a_folder_are_told_apart() -> None:
    """`no such file` and `a directory` ask for different repairs."""
    Path("folder").mkdir()
    assert [refusals(name)[0].found for name in ("gone.yaml", "folder")] == ["no such file", "a directory"]
    write_files(m="include: [folder]\n")
    assert refusals()[0].include_chain == ("m.yaml:1",)
