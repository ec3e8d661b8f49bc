"""The value tree: merge laws, and trails as people write them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from treadle.manifest.places import (
    Entry,
    Items,
    Leaf,
    Node,
    Place,
    PlainValue,
    Section,
    find,
    merge,
    nearest_entry,
    plain,
    planted,
    trail_of,
    trail_text,
)

NOWHERE = Place("-", 1, 1)
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=2).map(tuple),
    max_leaves=8,
)
TREES = st.builds(planted, VALUES, st.builds(Place, NAMES, st.integers(1, 9), st.integers(1, 9)))


@given(TREES, TREES, TREES)
def test_merging_is_associative(first: Node, second: Node, third: Node) -> None:
    """An include of an include must give what the same files listed flat give, places included."""
    assert merge(merge(first, second), third) == merge(first, merge(second, third))


@given(TREES, TREES)
def test_what_is_on_top_wins(under: Node, over: Node) -> None:
    """Own keys win over includes: nothing that `over` says may be altered by what lies below."""
    assert_says(merge(under, over), over)


@given(TREES)
def test_merging_with_itself_or_nothing_changes_nothing(tree: Node) -> None:
    """A file that is included twice must not differ from one included once."""
    assert plain(merge(tree, tree)) == plain(tree)
    if isinstance(tree, Section):
        assert merge(tree, Section({}, tree.place)) == tree


def test_lists_are_replaced_and_not_joined() -> None:
    """Whoever writes a list means that list."""
    under, over = planted({"columns": ("id", "text")}, NOWHERE), planted({"columns": ("id",)}, NOWHERE)
    assert plain(merge(under, over)) == {"columns": ("id",)}


def test_a_plain_value_hides_the_mapping_below_it() -> None:
    """`metrics: null` takes back what an include set, even if a later file opens the section again."""
    values: tuple[PlainValue, ...] = ({"m": {"log": "x"}}, {"m": None}, {"m": {"seed": 1}})
    files = [planted(value, NOWHERE) for value in values]
    assert plain(merge(merge(files[0], files[1]), files[2])) == {"m": {"seed": 1}}


@given(VALUES)
def test_planting_is_the_opposite_of_plain(value: object) -> None:
    """Typed params are planted into the tree and must come out as they went in."""
    assert plain(planted(value, NOWHERE)) == value  # type: ignore[arg-type]


def test_a_missing_trail_is_placed_at_its_longest_beginning() -> None:
    """A missing key has no place of its own; the section around it has."""
    section = Section({"path": Entry(Place("f", 3, 5), Leaf("x", Place("f", 3, 11)))}, Place("f", 3, 5))
    root = Section({"in": Entry(Place("f", 2, 1), section)}, Place("f", 1, 1))
    assert find(root, ("in", "columns", 0)) is None
    assert nearest_entry(root, ("in", "columns", 0)).key == Place("f", 2, 1)
    assert nearest_entry(root, ("out",)).key == Place("f", 1, 1)
    assert nearest_entry(root, ("in", "path")).node == Leaf("x", Place("f", 3, 11))


def test_a_trail_reads_and_writes_as_people_do() -> None:
    """Other rooms name fields by text."""
    assert trail_text(("inputs", "documents", "columns", 1)) == "inputs.documents.columns[1]"
    assert trail_of("inputs.documents.columns[1]") == ("inputs", "documents", "columns", 1)
    assert trail_of("") == ()


def assert_says(tree: Node, over: Node) -> None:
    if isinstance(over, Section):
        assert isinstance(tree, Section)
        for name, entry in over.entries.items():
            assert tree.entries[name].key == entry.key
            assert_says(tree.entries[name].node, entry.node)
    else:
        assert isinstance(over, Leaf | Items)
        assert tree == over
