"""What every stream reads from its pages is what was written for it, whatever was forked, shared or moved.

Each token leaves a number that depends on all tokens before it, so a page that is wrong, stale or written by
two shows at once.
"""

import zlib

import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_plan import KvPlan
from treadle.engine.resources.kv_step import KvClaim, KvStep
from treadle.engine.resources.kv_store import KvShape
from treadle.engine.resources.pages import Fork
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import CachedPrefix, Refusal, Segment, SubmoduleStep

RIDS = st.sampled_from("abc")
# Few texts with many common beginnings.
TEXTS = st.builds(
    lambda same, other: [1] * same + other, st.integers(1, 12), st.sampled_from([[], [2], [2, 1]])
)
LABELS = ("main", "left", "right")
Stream = tuple[str, str]


def mark(tokens: list[int]) -> float:
    """What the last token leaves behind."""
    return float(zlib.crc32(bytes(tokens)) % 2**20)


class ContentMachine(RuleBasedStateMachine):
    """Opens, steps, forks, windows, prefixes, offloads and ends, in any order."""

    @initialize(
        data=st.data(),
        pages=st.integers(2, 30),
        page_size=st.integers(1, 4),
        window=st.sampled_from([None, None, 2, 5]),
        cached=st.sampled_from([True, True, False]),
        lazy=st.sampled_from([1, 3]),
        host=st.sampled_from([0, 3, 40, 40]),
    )
    def build(
        self,
        data: st.DataObject,
        pages: int,
        page_size: int,
        window: int | None,
        cached: bool,
        lazy: int,
        host: int,
    ) -> None:
        self.window = window
        self.cache = PagedKvCache(
            KvShape(1, 1, 1),
            pages,
            page_size,
            window=window,
            prefix_cache=cached and window is None,
            lazy_keys=lazy,
            host_pages=host,
        )
        self.runner = StepRunner({"kv": self.cache}, {"node": ["kv"]})
        self.prompts: dict[str, list[int]] = {}
        self.claims: dict[str, int] = {}
        self.tokens: dict[Stream, list[int]] = {}
        self.waived: set[str] = set()
        for rid in "abc":
            self.open(rid, data.draw(TEXTS), data.draw(st.integers(0, 12)), 14, True)

    @rule(rid=RIDS, prompt=TEXTS, claim=st.integers(0, 20), cut=st.integers(0, 14), apply=st.booleans())
    def open_one(self, rid: str, prompt: list[int], claim: int, cut: int, apply: bool) -> None:
        self.open(rid, prompt, claim, cut, apply)

    def open(self, rid: str, prompt: list[int], claim: int, cut: int, apply: bool) -> None:
        if rid in self.prompts or not self.cache.can_promise(claim):
            return
        self.runner.ingest_request(rid, {"kv": KvClaim(claim)})
        self.prompts[rid], self.claims[rid], self.tokens[rid, "main"] = prompt, claim, []
        found = self.runner.resolve_cached_prefix(rid, "node", "walk", prompt)
        assert self.runner.resolve_cached_prefix(rid, "node", "walk", prompt) == found
        if found and apply:
            agreed = CachedPrefix(min(found.length, cut))
            self.runner.apply_cached_prefix(rid, "node", "walk", prompt, agreed)
            self.tokens[rid, "main"] = prompt[: agreed.length]
            if agreed.length % self.cache.ledger.page_size:
                self.waived.add(rid)  # the copy of the page that it ends in is a page more
        elif found:
            self.runner.release_cached_prefix(rid, "node", "walk")
            self.waived.add(rid)  # the room that the lease stood for may be somebody else's by now

    @rule(
        data=st.data(),
        end=st.sampled_from(["commit", "commit", "commit", "roll back", "lose a row", "clear"]),
    )
    def step(self, data: st.DataObject, end: str) -> None:
        if not self.tokens:
            return
        streams = data.draw(st.lists(st.sampled_from(sorted(self.tokens)), min_size=1, unique=True))
        before = [fork for fork in (self.fork(data, each) for each in streams) if fork]
        before = list({fork.target: fork for fork in before}.values())
        added = {stream: self.next_tokens(data, stream) for stream in streams}
        added |= {fork.target: [9] for fork in before if data.draw(st.booleans())}
        segments = tuple(Segment(rid, len(new), label) for (rid, label), new in added.items())
        step = SubmoduleStep({"kv": KvStep(before=tuple(before))}, segments)
        free, kept = self.cache.ledger.free, self.cache.holdings().kept
        ahead = end == "clear" or data.draw(st.booleans())
        outcome = self.runner.pre_admit(step) if ahead else self.runner.admit(step)
        if not outcome.ok:
            away = any(self.cache.is_offloaded(rid) for rid, _ in added)
            assert (outcome.reason is Refusal.OFFLOADING) == away
            assert away or self.overdrawn(added, before), "a promise was broken"
            assert self.cache.ledger.free == free
            return
        taken = len(self.cache.ledger.free)
        if end == "clear":
            self.runner.clear_preplan()
        elif end == "lose a row":
            self.end(streams[0][0])
            self.runner.rollback_admit(step)
        elif end == "roll back":
            self.runner.rollback_admit(step)
            self.release(streams[0][0])
        else:
            assert not ahead or self.runner.admit(step).ok
            assert len(self.cache.ledger.free) == taken, "admitted twice"
            self.commit(step, added, before, data)
        # A page that the prefix cache let go of for the step is free now.
        if end in ("clear", "roll back") and self.cache.holdings().kept == kept:
            assert self.cache.ledger.free == free

    @rule(data=st.data(), rid=RIDS, prompt=TEXTS)
    def next_turn(self, data: st.DataObject, rid: str, prompt: list[int]) -> None:
        """The request is answered, and comes back with its text and more."""
        for _ in range(3):
            self.step(data, "commit")
        text = self.tokens.get((rid, "main"), []) + prompt
        self.end(rid)
        self.open(rid, text, len(text), len(text), True)

    @rule(rid=RIDS)
    def release(self, rid: str) -> None:
        """The walk will not run on what is held, and computes everything itself."""
        if rid in self.prompts and self.cache.lease_cached_prefix(rid, "node", "walk"):
            self.runner.release_cached_prefix(rid, "node", "walk")
            self.waived.add(rid)
            self.tokens[rid, "main"] = []

    @rule(rid=RIDS)
    def hang_up(self, rid: str) -> None:
        self.end(rid)

    def end(self, rid: str) -> None:
        self.runner.remove_request(rid)
        self.prompts.pop(rid, None)
        self.claims.pop(rid, None)
        self.waived.discard(rid)
        self.tokens = {key: tokens for key, tokens in self.tokens.items() if key[0] != rid}

    @rule(rid=RIDS)
    def move_one(self, rid: str) -> None:
        self.move(rid)

    def move(self, rid: str) -> None:
        if self.cache.can_offload(rid):
            before = self.cache.ledger.accounts.pool.available
            assert self.cache.offload(rid) == self.cache.ledger.accounts.pool.available - before
        elif self.cache.can_reload(rid):
            self.cache.reload(rid)

    def commit(
        self, step: SubmoduleStep, added: dict[Stream, list[int]], before: list[Fork], data: st.DataObject
    ) -> None:
        for fork in before:
            self.tokens[fork.target] = list(self.tokens[fork.request_id, fork.label])
        marks = []
        for stream, new in added.items():
            for token in new:
                self.tokens[stream].append(token)
                marks.append(mark(self.tokens[stream]))
        self.runner.plan(step)
        content = torch.tensor(marks)[:, None, None]
        self.cache.write(0, content, -content, step.ctx.result("kv", KvPlan))
        self.runner.commit(step)
        free = self.cache.ledger.free
        self.runner.rollback_admit(step)
        assert self.cache.ledger.free == free, "a committed step was undone"
        for rid, label in added:
            stored, prompt = self.tokens[rid, label], self.prompts[rid]
            if label == "main" and len(stored) >= len(prompt) and added[rid, label]:
                prompt.append(data.draw(st.sampled_from([1, 2])))
                self.runner.extend_prefix_chains(rid, "node", "walk", [prompt[-1]])

    def fork(self, data: st.DataObject, stream: Stream) -> Fork | None:
        rid, label = stream
        new = next((each for each in LABELS if (rid, each) not in self.tokens), None)
        wanted = new is not None and data.draw(st.booleans())
        return Fork(rid, new, label) if new is not None and wanted else None

    def next_tokens(self, data: st.DataObject, stream: Stream) -> list[int]:
        done, prompt = len(self.tokens[stream]), self.prompts[stream[0]]
        if stream[1] != "main":
            return [7] * data.draw(st.integers(0, 3))
        return prompt[done : done + data.draw(st.integers(0, 6))]

    def overdrawn(self, added: dict[Stream, list[int]], before: list[Fork]) -> bool:
        """Whether a request of the step goes beyond its claim, or waived a part, as a fork may do at once."""
        forked = (
            self.waived
            | {rid for rid, label in self.tokens if label != "main"}
            | {fork.target[0] for fork in before}
        )
        return any(
            rid in forked or len(self.tokens[rid, label]) + len(new) > self.claims[rid]
            for (rid, label), new in added.items()
            if new
        )

    @invariant()
    def every_stream_reads_what_was_written_for_it(self) -> None:
        if not hasattr(self, "cache"):
            return
        self.runner.check_integrity()
        size, keys = self.cache.ledger.page_size, self.cache.layer(0)[0][0, :, :, 0]
        for (rid, label), tokens in self.tokens.items():
            stream = self.cache.ledger.stream(rid, label)
            if self.cache.is_offloaded(rid) or stream.lease:
                continue
            assert stream.stored == len(tokens)
            first = stream.gone * size
            seen = range(first, len(tokens))
            assert self.window is None or first <= max(0, len(tokens) + 1 - self.window)
            read = [float(keys[stream.pages[at // size - stream.gone], at % size]) for at in seen]
            assert read == [mark(tokens[: at + 1]) for at in seen]
        # What is free is somebody else's to write on.
        keys[list(self.cache.ledger.free)] = torch.nan
        if not self.tokens:
            assert self.cache.ledger.accounts.pool.available == self.cache.ledger.total


TestContentMachine = ContentMachine.TestCase
TestContentMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
