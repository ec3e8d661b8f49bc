"""Prefixes that need not be computed: asked for, leased, adopted, begun behind, served whole, given back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from treadle.engine.resources import Segment
from treadle.engine.resources.protocols import CachingPrefixes, LeasingPrefixes, TrailingPages
from treadle.engine.resources.step import CachedPrefix
from treadle.errors import EngineError
from treadle.testing.resources.bench import MAIN, NODE, WALK, Bench, expect
from treadle.testing.resources.machine import RIDS
from treadle.testing.resources.publishing import Publishes

HOW = st.sampled_from(["begins", "follows", "gives back"])
PROMPTS = st.sampled_from([(1,), (2,), (1, 2)])

Leases = Mapping[str, Sequence[int]]
"""Key -> pages that are held for a request."""


class Walk(NamedTuple):
    """What a request is about to go through."""

    rid: str
    name: str
    inputs: Sequence[int]


class BeginsBehindPrefixes(Publishes):
    """What caches prefixes, leases them, or leaves trails."""

    @precondition(lambda self: self._before_a_walk() and self._has_prefixes())
    @rule(data=st.data(), prompt=PROMPTS, how=HOW)
    def begin_behind_a_prefix(
        self, data: st.DataObject, prompt: tuple[int, ...], how: str, rid: str | None = None
    ) -> None:
        """A prefix is asked for and leased, each twice; it is given back, or the request begins behind it.

        The twin asks as well, or adopts what was leased: the very same is there.
        """
        walk = self._next_walk(rid or data.draw(st.sampled_from(self._before_a_walk())), prompt)
        prefix, leases = self._resolve_and_lease(walk)
        self._adopt_where_it_is_not(walk, leases)
        begins = how != "gives back" and prefix is not None
        if self.twin is not None:
            self._twin_begins(self.twin, walk, prefix, leases if begins and how == "follows" else None)
        if begins and prefix is not None:
            self._begin(walk, prefix, given_back=data.draw(st.booleans()))
        else:
            self._both_release(walk)

    @precondition(lambda self: self.able() and self._has_prefixes())
    @rule(data=st.data(), prompt=PROMPTS, rid=RIDS)
    def come_again(self, data: st.DataObject, prompt: tuple[int, ...], rid: str) -> None:
        """A request begins, runs and goes, and another one begins as it did."""
        for _ in range(2):
            self.remove(rid, data)
            self.open(rid, data)
            if rid not in self.stored:
                return
            self.begin_behind_a_prefix(data, prompt, data.draw(HOW), rid)
            if room := self.stored.room_of(rid):
                step = self.main.step([Segment(rid, data.draw(st.integers(1, room)))])
                if self.admit(step):
                    self.commit(step)

    @precondition(lambda self: self.main.having(TrailingPages))
    @rule(data=st.data())
    def step_alike(self, data: st.DataObject) -> None:
        """Two that do the same leave the same trail; one that did other things than what is new, another."""
        overrides, spans = data.draw(self.subject.requests), self.subject.spans
        steps = data.draw(st.lists(st.tuples(st.sampled_from("ab"), spans), min_size=1, max_size=3))
        try:
            one, other = (_driven(Bench(self.subject), overrides, steps) for _ in range(2))
        except EngineError:
            return
        expect(one == other, f"two that did the same left the trails {one} and {other}")
        new = Bench(self.subject)
        for key, trail in new.runner.page_trails(NODE).items():
            held = self.main.holdings().get(key)
            alike = self.main.runner.page_trails(NODE)[key] == trail
            expect(
                not alike or held is None or held == new.holdings()[key],
                f"resource {key!r} has the trail of what is new, and holds {held}",
            )

    def _before_a_walk(self) -> list[str]:
        return [rid for rid in self.able() if rid not in self.begun and self.stored.room_of(rid)]

    def _next_walk(self, rid: str, prompt: Sequence[int]) -> Walk:
        stored, walks = self.stored.of(rid), self.subject.walks
        if walks is not None and (told := walks(self.overrides[rid], stored)) is not None:
            return Walk(rid, *told)
        return Walk(rid, WALK, (tuple(prompt) * self.subject.limit)[: self.subject.limit - stored])

    def _resolve_and_lease(self, walk: Walk) -> tuple[CachedPrefix | None, Leases]:
        runner, before = self.main.runner, self.main.holdings()
        once, again = (runner.resolve_cached_prefix(walk.rid, NODE, walk.name, walk.inputs) for _ in range(2))
        expect(once == again, f"asked twice for a prefix, the answers are {once} and {again}")
        leases, held = runner.lease_cached_prefix(walk.rid, NODE, walk.name), self.main.holdings()
        expect(leases == runner.lease_cached_prefix(walk.rid, NODE, walk.name), "leased twice, others come")
        self.unchanged(held, "leasing again")
        if held != before:
            runner.release_cached_prefix(walk.rid, NODE, walk.name)
            self.unchanged(before, "a lease that was given back")
            runner.resolve_cached_prefix(walk.rid, NODE, walk.name, walk.inputs)
            leases = runner.lease_cached_prefix(walk.rid, NODE, walk.name)
        return once, leases

    def _adopt_where_it_is_not(self, walk: Walk, leases: Leases) -> None:
        """One that is behind holds nothing and says so; it is wrong when it should have caught up."""
        if not leases:
            return
        behind = Bench(self.subject)
        behind.runner.ingest_request(walk.rid, self.overrides[walk.rid])
        before, adopt = behind.holdings(), behind.runner.adopt_cached_prefix
        adopted = adopt(walk.rid, NODE, walk.name, leases, caught_up=False)
        expect(not adopted, f"where nothing was stored, the pages {leases} were adopted")
        try:
            adopt(walk.rid, NODE, walk.name, leases, caught_up=True)
        except EngineError:
            adopted = True
        expect(adopted, f"one that has caught up lacks the pages {leases}, and that is no error")
        expect(behind.holdings() == before, f"the pages {leases} were not adopted, and something is held")

    def _twin_begins(
        self, twin: Bench, walk: Walk, prefix: CachedPrefix | None, leases: Leases | None
    ) -> None:
        """It holds the same, because it is asked too, or because it adopts `leases`."""
        rid, name, inputs = walk
        if leases is None:
            expected = twin.runner.resolve_cached_prefix(rid, NODE, name, inputs)
            expect(prefix == expected, f"served is {prefix}; where nothing was undone before, {expected}")
            return
        for _ in range(2):
            adopted = twin.runner.adopt_cached_prefix(rid, NODE, name, leases, caught_up=True)
            expect(adopted, f"what steps alike does not adopt the pages {leases}")
        held = twin.runner.lease_cached_prefix(rid, NODE, name)
        expect(held == leases, f"leased was {leases}, and adopted is {held}")

    def _begin(self, walk: Walk, prefix: CachedPrefix, *, given_back: bool) -> None:
        rid, name, inputs = walk
        self.main.runner.apply_cached_prefix(rid, NODE, name, inputs, prefix)
        self.likewise(lambda twin: twin.runner.apply_cached_prefix(rid, NODE, name, inputs, prefix))
        self.stored.add(rid, prefix.length)
        if not prefix.whole:
            self.begun.add(rid)
        else:
            self.main.runner.complete_cached_walk(rid, NODE, name)
            self.likewise(lambda twin: twin.runner.complete_cached_walk(rid, NODE, name))
            if given_back:
                self._both_release(walk)
            self._has_as_if_it_ran(rid)
        self.look_at([(rid, MAIN)])

    def _has_as_if_it_ran(self, rid: str) -> None:
        """As many units as where all of it was computed."""
        ran = Bench(self.subject)
        ran.runner.ingest_request(rid, self.overrides[rid])
        if not ran.run(ran.step((Segment(rid, self.stored.of(rid)),)))[0].ready:
            return
        held, expected = (
            {key: len(each.held.get(rid, ())) for key, each in bench.holdings().items()}
            for bench in (self.main, ran)
        )
        lacking = {key: (count, held[key]) for key, count in expected.items() if held[key] < count}
        expect(not lacking, f"{rid!r} was served whole; expected and held units are {lacking}")

    def _both_release(self, walk: Walk) -> None:
        self.main.runner.release_cached_prefix(walk.rid, NODE, walk.name)
        self.likewise(lambda twin: twin.runner.release_cached_prefix(walk.rid, NODE, walk.name))

    def _has_prefixes(self) -> bool:
        return bool(self.main.having(CachingPrefixes) or self.main.having(LeasingPrefixes))  # type: ignore[type-abstract]


def _driven(
    bench: Bench, overrides: Mapping[str, object], steps: Sequence[tuple[str, int]]
) -> dict[str, tuple[int, int]]:
    """Its trails after these steps, each of a request that is opened before, and the removal of one."""
    for rid in "ab":
        bench.runner.ingest_request(rid, overrides)
    for rid, span in steps:
        bench.run(bench.step((Segment(rid, span),)))
    bench.runner.remove_request("a")
    return bench.runner.page_trails(NODE)
