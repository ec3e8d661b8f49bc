"""What every kind of ledger does, one client at a time."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from treadle.errors import ArtifactError, LeaseLostError
from treadle.storage.ledger import AttemptNote, Claim, Entry, Held, Ledger, RunNote

Note = Callable[..., AttemptNote]
PLACES = ["a", "a/b", "/absolute/place", "s3://bucket//twice", "with space/ünï%2F@", "a/@/b", "x-1"]


def nothing() -> None:
    pass


def take(ledger: Ledger, place: str) -> Claim:
    claim = ledger.claim(place, nothing, "r1")
    assert isinstance(claim, Claim)
    return claim


@pytest.fixture
def build(ledger: Ledger, note: Note) -> Callable[..., int]:
    def build(place: str, head: str = "{}", publish: Callable[[], None] | None = None) -> int:
        claim = take(ledger, place)
        ledger.commit(claim, head, f"body of {head}", note(place), publish)
        return claim.number

    return build


def test_an_empty_ledger_has_nothing(ledger: Ledger) -> None:
    assert ledger.latest(["a"]) == {}
    assert ledger.builds("a") == []
    assert list(ledger.places()) == []
    assert ledger.owners(["a"]) == {}
    assert ledger.attempts() == []
    assert ledger.last_attempts(["a"]) == {}
    assert ledger.runs() == []
    ledger.withdraw("a")
    ledger.forget("a", [1])


@pytest.mark.parametrize("place", PLACES)
def test_a_build_stands_when_it_is_committed(ledger: Ledger, build: Callable[..., int], place: str) -> None:
    assert build(place, "first") == 1
    assert ledger.latest([place, "other"]) == {place: Entry(place, 1, "first", "")}
    assert ledger.body(place, 1) == "body of first"
    assert ledger.builds(place) == [Entry(place, 1, "first", "body of first")]
    assert ledger.owners([place]) == {}
    assert [each.place for each in ledger.attempts(place)] == [place]


def test_numbers_count_up_and_only_the_newest_build_stands(ledger: Ledger, build: Callable[..., int]) -> None:
    assert [build("a", head) for head in ("one", "two", "three")] == [1, 2, 3]
    assert ledger.latest(["a"])["a"].head == "three"
    assert [(each.number, each.stands) for each in ledger.builds("a")] == [(1, False), (2, False), (3, True)]
    ledger.withdraw("a")
    assert ledger.latest(["a"]) == {}
    assert list(ledger.places()) == []
    assert ledger.body("a", 2) == "body of two"


def test_places_come_sorted_and_without_those_inside_of_each_other(
    ledger: Ledger, build: Callable[..., int]
) -> None:
    for place in PLACES:
        build(place, place)
    assert [(each.place, each.head, each.body) for each in ledger.places()] == [
        (place, place, "") for place in sorted(PLACES)
    ]
    assert set(ledger.latest(PLACES)) == set(PLACES)


def test_a_place_has_one_owner_until_it_is_released(ledger: Ledger, note: Note) -> None:
    claim = take(ledger, "a")
    held = ledger.claim("a", nothing)
    assert isinstance(held, Held)
    assert held.owner == ledger.owners(["a", "b"])["a"]
    assert held.owner.describe().startswith("run r1 on ")
    ledger.release(claim, note("a", outcome="failed"))
    assert ledger.owners(["a"]) == {}
    assert [each.outcome for each in ledger.attempts("a")] == ["failed"]
    assert take(ledger, "a").number == 1


def test_leases_are_listed_also_of_places_that_have_nothing_else(
    ledger: Ledger, build: Callable[..., int], note: Note
) -> None:
    assert list(ledger.leases()) == []
    build("a")
    claims = [take(ledger, place) for place in ("c", "a", "with space/ünï%2F@")]
    assert dict(ledger.leases()) == ledger.owners(claim.place for claim in claims)
    assert [place for place, _ in ledger.leases()] == ["a", "c", "with space/ünï%2F@"]
    ledger.release(claims[0])
    ledger.commit(claims[1], "{}", "{}", note("a"), None)
    assert [place for place, _ in ledger.leases()] == ["with space/ünï%2F@"]


def test_what_is_over_cannot_be_committed(ledger: Ledger, note: Note) -> None:
    claim = take(ledger, "a")
    ledger.release(claim)
    published: list[str] = []
    with pytest.raises(LeaseLostError, match="a: cannot commit build 1"):
        ledger.commit(claim, "{}", "{}", note("a"), lambda: published.append("files"))
    ledger.release(claim)
    again = take(ledger, "a")
    ledger.commit(again, "{}", "{}", note("a"), None)
    with pytest.raises(LeaseLostError, match="a: cannot commit build 1"):
        ledger.commit(again, "{}", "{}", note("a"), lambda: published.append("files"))
    assert published == []
    assert len(ledger.builds("a")) == 1


def test_a_late_release_leaves_the_lease_of_the_next_owner(ledger: Ledger, note: Note) -> None:
    claim = take(ledger, "a")
    ledger.commit(claim, "{}", "{}", note("a"), None)
    take(ledger, "a")
    ledger.release(claim)
    assert "a" in ledger.owners(["a"])


def test_files_that_cannot_be_published_are_no_build(ledger: Ledger, build: Callable[..., int]) -> None:
    """The former build does not stand either: its files may be half replaced."""
    build("a", "one")

    def fail() -> None:
        assert ledger.latest(["a"]) == {}
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        build("a", "two", fail)
    assert ledger.latest(["a"]) == {}
    assert [each.number for each in ledger.builds("a")] == [1]
    assert "a" in ledger.owners(["a"])


def test_a_forgotten_number_is_not_given_out_again(ledger: Ledger, build: Callable[..., int]) -> None:
    """Else a paused owner of the old number could commit over the new one."""
    for head in ("one", "two", "three"):
        build("a", head)
    ledger.forget("a", [1, 3, 9])
    assert [(each.number, each.stands) for each in ledger.builds("a")] == [(2, False)]
    assert ledger.latest(["a"]) == {}
    with pytest.raises(ArtifactError, match="there is no build 3 of a"):
        ledger.body("a", 3)
    assert build("a", "four") == 4


def test_attempts_are_newest_first(ledger: Ledger, note: Note) -> None:
    ledger.note([note("a", run="r1"), note("b", run="r1"), note("a", run="r2", outcome="failed")])
    ledger.note([note("b", run="r2", attempt=2)])
    assert [(each.place, each.run) for each in ledger.attempts()] == [
        ("b", "r2"),
        ("a", "r2"),
        ("b", "r1"),
        ("a", "r1"),
    ]
    assert [each.run for each in ledger.attempts(place="a")] == ["r2", "r1"]
    assert [each.place for each in ledger.attempts(run="r1")] == ["b", "a"]
    assert [each.place for each in ledger.attempts(limit=1)] == ["b"]
    assert [each.outcome for each in ledger.attempts("a", "r2", 5)] == ["failed"]
    assert {place: each.run for place, each in ledger.last_attempts(["a", "b", "c"]).items()} == {
        "a": "r2",
        "b": "r2",
    }


def test_the_places_of_a_step_are_found_by_how_its_id_begins(ledger: Ledger, note: Note) -> None:
    ids = {"b": "train-1b2c", "a": "train-1b99", "c": "trainer@1_0", "d": "Train-1b2c", "e": "tr%in-1b"}
    ledger.note([replace(note(place), step_id=step_id) for place, step_id in ids.items()])
    ledger.note([replace(note("a"), step_id="train-1b99", attempt=2)])
    assert ledger.places_of("train") == ["a", "b", "c"]
    assert ledger.places_of("train-1b2") == ["b"]
    assert ledger.places_of("tr%") == ["e"]
    assert ledger.places_of("rain") == []


@pytest.mark.parametrize("store", ["sqlite", "memory"], indirect=True)
def test_the_last_attempt_that_was_done_tells_how_long_a_step_takes(ledger: Ledger, note: Note) -> None:
    slow, failed = note("a"), note("a", outcome="failed")
    ledger.note([note("a"), replace(slow, seconds=9.0), replace(failed, seconds=1.0)])
    ledger.note([replace(note("b"), name="other", seconds=2.0)])
    assert ledger.seconds(["step", "unknown"]) == {"step": 9.0}


def test_any_text_can_be_a_reason(ledger: Ledger, note: Note) -> None:
    """It is the message of any exception, also of one with a path that is no Unicode."""
    ledger.note([replace(note("a"), reason="no such file: \udce4\0 'ä' \U0001f9f5")])
    assert "\U0001f9f5" in ledger.attempts("a")[0].reason


def test_a_run_is_noted_when_it_begins_and_when_it_ends(ledger: Ledger) -> None:
    first = RunNote("r/1", "2026-01-01T00:00:00+00:00", "", "host", "treadle run", {})
    second = RunNote("r2", "2026-01-02T00:00:00+00:00", "", "host", "treadle run", {"done": 2})
    ended = RunNote("r/1", first.started, "2026-01-03T00:00:00+00:00", "host", "treadle run", {"failed": 1})
    for each in (first, second, ended):
        ledger.note_run(each)
    assert ledger.runs() == [second, ended]
    assert ledger.runs(limit=1) == [second]


def test_a_closed_ledger_opens_again(ledger: Ledger, build: Callable[..., int]) -> None:
    """It is shared: whoever closes it does not know who else uses it."""
    build("a", "one")
    ledger.close()
    assert ledger.latest(["a"])["a"].head == "one"
    assert build("a", "two") == 2


def test_many_places_are_read_at_once(ledger: Ledger, build: Callable[..., int]) -> None:
    places = [f"place-{number}" for number in range(12)]
    for place in places:
        build(place, place)
    assert {place: entry.head for place, entry in ledger.latest(places).items()} == {
        place: place for place in places
    }
