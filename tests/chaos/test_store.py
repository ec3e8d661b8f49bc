"""The ledger and the working folders on a store that fails: leases, conditional writes, errors, user code."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest

from tests.chaos.proxy import Fault, Proxy
from treadle.artifacts import open_store
from treadle.artifacts.remote_workplace import RemoteWorkplace
from treadle.errors import ArtifactError, LedgerError
from treadle.execution import Retry, StepRunner, StepSpec
from treadle.storage.ledger import AttemptNote, Claim, Held
from treadle.storage.ledger.bucket import Bucket
from treadle.storage.ledger.objects import ObjectLedger
from treadle.storage.reach import reach

ACTOR = Path(__file__).parents[1] / "storage/ledger/actor.py"
NOTE = AttemptNote("r", "a", "a", "a", 1, "done", "", "2026-01-01T00:00:00+00:00", 0.1)
LARGE = 5 * 2**20 + 1


@pytest.fixture
def ledgers(bucket: str, proxy: Proxy) -> Iterator[Callable[[float], ObjectLedger]]:
    """Ledgers on one store, by the lives of their leases."""
    made: list[ObjectLedger] = []

    def make(ttl: float) -> ObjectLedger:
        made.append(ObjectLedger(bucket, ttl))
        return made[-1]

    yield make
    for each in made:
        each._heart.close()


def test_a_claim_outlives_an_outage_that_is_longer_than_its_lease(
    ledgers: Callable[[float], ObjectLedger], proxy: Proxy
) -> None:
    """Its owner could give no sign of life, but neither could anybody see that."""
    owner, other, lost = ledgers(0.6), ledgers(0.6), threading.Event()
    claim = owner.claim("a", lost.set)
    assert isinstance(claim, Claim)
    assert isinstance(other.claim("a", print), Held)
    outage = proxy.cut_for(2)
    assert isinstance(other.claim("a", print), Held), "it waited, and did not count the time"
    outage.join()
    owner.commit(claim, "mine", "{}", NOTE, None)
    assert not lost.is_set()
    assert [each.head for each in other.builds("a")] == ["mine"]
    assert other.owners(["a"]) == {}


def test_an_owner_that_alone_is_cut_off_is_replaced_and_cannot_commit(
    bucket: str, proxy: Proxy, ledgers: Callable[[float], ObjectLedger]
) -> None:
    behind = Proxy(proxy.target)
    environment = {**os.environ, "AWS_ENDPOINT_URL": behind.url}
    command = [sys.executable, str(ACTOR), "objects", bucket, "0.6"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as actor:
        assert actor.stdin is not None
        assert actor.stdout is not None
        actor.stdin.write('["claim", "a"]\n')
        actor.stdin.flush()
        assert actor.stdout.readline() == "1\n"
        other, pause = ledgers(30), threading.Event()
        with behind.away():
            while isinstance(claim := other.claim("a", print), Held):
                pause.wait(0.05)
        actor.stdin.write('["wait_until_lost", "a"]\n["commit", "a", "theirs"]\n')
        actor.stdin.flush()
        assert [actor.stdout.readline() for _ in "ab"] == ["lost\n", "lost\n"]
        other.commit(claim, "mine", "{}", NOTE, None)
        assert [each.head for each in other.builds("a")] == ["mine"]
        actor.stdin.close()
    behind.close()


def test_a_sign_of_life_that_gets_no_answer_is_not_overtaken_by_the_next(
    ledgers: Callable[[float], ObjectLedger], proxy: Proxy
) -> None:
    """Two at once would take each other's for that of a new owner."""
    ledger, lost = ledgers(6), threading.Event()
    claim = ledger.claim("a", lost.set)
    assert isinstance(claim, Claim)
    ledger._heart.close()
    kept = ledger._heart.find(claim)
    assert kept is not None
    proxy.fault(1, Fault.STALL_AFTER)
    for _ in range(3):
        with pytest.raises(LedgerError, match="no answer to a sign of life"):
            ledger._beat([kept])
    assert proxy.seen[-1].end == Fault.STALL_AFTER, "nothing was asked after it"
    proxy.well()
    while ledger._beats.under_way:
        threading.Event().wait(0.01)
    ledger._beat([kept])
    assert not kept.lost
    ledger.commit(claim, "mine", "{}", NOTE, None)


def test_a_claim_that_failed_does_not_keep_this_process_out(
    ledgers: Callable[[float], ObjectLedger], proxy: Proxy, patience: Callable[[float], None]
) -> None:
    """Its lease may be in the store, for half an hour."""
    patience(0.1)
    ledger = ledgers(1800)
    ledger.claim("warm", print)
    ledger.latest(["a"])
    proxy.fault(1, Fault.LOST_ANSWER, burst=1000)
    with pytest.raises(LedgerError, match=r"/a/@/lease-00000001-00000001\.json: .*out of reach for"):
        ledger.claim("a", print)
    proxy.well()
    assert isinstance(ledger.claim("a", print), Claim)


def test_a_commit_whose_answer_never_comes_says_that_its_end_is_not_known(
    ledgers: Callable[[float], ObjectLedger], proxy: Proxy, patience: Callable[[float], None]
) -> None:
    patience(0.1)
    ledger = ledgers(30)
    claim = ledger.claim("a", print)
    assert isinstance(claim, Claim)
    proxy.fault(2, Fault.LOST_ANSWER, burst=1000)
    with pytest.raises(LedgerError, match="create") as caught:
        ledger.commit(claim, "head", "{}", NOTE, None)
    proxy.well()
    assert caught.value.__notes__ == ["whether build 1 of a is committed is not known; the next run will see"]
    assert [each.number for each in ledger.builds("a")] == [1]
    assert ledger.attempts() == [NOTE], "the build tells of it"
    assert ledger.last_attempts("a") == {"a": NOTE}


@pytest.mark.parametrize("kind", [Fault.STALL, Fault.ERROR_500, Fault.RESET])
def test_a_store_that_is_gone_is_named_with_what_was_asked(
    kind: Fault,
    bucket: str,
    proxy: Proxy,
    patience: Callable[[float], None],
    answer_within: Callable[[float], None],
) -> None:
    """One that says nothing must not be waited for for ever."""
    patience(0.2)
    answer_within(0.2)
    proxy.fault(1, kind, burst=1000)
    for act, told in ((Bucket(bucket).find, "list"), (Bucket(bucket).read, "read")):
        with pytest.raises(
            LedgerError, match=rf"{bucket}/x: cannot use the ledger of the store: {told}: .*up to 0.2 s"
        ):
            act("x")
    with pytest.raises(
        ArtifactError, match=rf"{bucket}/x/.*: cannot use the store: list: .*; see that it can be reached"
    ):
        RemoteWorkplace().open(f"{bucket}/x").files()
    assert reach(bucket).outage.lasted() > 0
    assert len(proxy.seen) < 20, "tries are not multiplied by those of the client"


# Conditional writes


@pytest.mark.parametrize("size", [10, LARGE])
def test_of_many_who_make_one_object_of_any_size_one_succeeds(bucket: str, proxy: Proxy, size: int) -> None:
    contents = [bytes([number]) * size for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda content: Bucket(bucket).create("a", content), contents))
    assert made.count(True) == 1
    assert Bucket(bucket).read("a") == contents[made.index(True)]


def test_an_object_in_parts_is_made_once_too(bucket: str, proxy: Proxy) -> None:
    """What s3fs does for steps that write so by themselves. One by one: this server is no judge of races."""
    fs = fsspec.filesystem("s3")

    def make(number: int) -> bool:
        with fs.open(f"{bucket}/a", "xb", block_size=5 * 2**20) as file:
            file.write(bytes([number]) * LARGE * 2)
            try:
                file.close()
            except FileExistsError:
                return False
        return True

    assert [make(number) for number in range(3)] == [True, False, False]
    assert fs.cat_file(f"{bucket}/a")[:1] == bytes([0])
    assert any("uploadId" in each.path for each in proxy.seen)


def test_a_store_without_conditional_writes_is_refused(bucket: str, proxy: Proxy) -> None:
    proxy.ignores_conditions = True
    with pytest.raises(LedgerError, match=r"exclusive\.json: cannot keep a ledger here: .*If-None-Match"):
        ObjectLedger(bucket, 30).claim("a", print)
    assert ObjectLedger(bucket, 30).latest(["a"]) == {}, "reading it is no harm"
    proxy.ignores_conditions = False
    ledger = ObjectLedger(bucket, 30)
    claim = ledger.claim("a", print)
    assert isinstance(claim, Claim)
    ledger.release(claim)


def test_it_is_asked_once_by_each_process(bucket: str, proxy: Proxy) -> None:
    for _ in range(2):
        each = Bucket(bucket)
        each.create("a", b"1")
        each.create("b", b"1")
    probes = [each.end for each in proxy.seen if each.path.endswith("exclusive.json")]
    assert probes == ["200", "412", "412"]


# What a step costs, and what its own code meets


def write(path: str) -> str:
    with fsspec.open(f"{path}/out.txt", "w") as file:
        file.write("x")
    return path


def step(bucket: str, name: str, **options: Retry) -> StepSpec:
    return StepSpec(name, write, output_path_prefix=bucket, **options)  # type: ignore[arg-type]


def test_how_many_requests_a_step_costs(bucket: str, proxy: Proxy) -> None:
    """Each takes 20 to 50 ms on S3. Beside these: two for each run, and what the function asks for itself."""
    StepRunner(1).run([step(bucket, "first")])
    before = len(proxy.seen)
    StepRunner(1).run([step(bucket, "second")])
    cold = [each for each in proxy.seen[before:] if "/runs/" not in each.path]
    own = [each for each in cold if each.path.endswith("out.txt") or each.method == "HEAD"]
    before = len(proxy.seen)
    StepRunner(1).run([step(bucket, "second")])
    assert (len(cold) - len(own), len(proxy.seen) - before) == (8, 3)


def test_the_code_of_a_step_meets_an_outage_as_an_error_and_its_retry_helps(
    bucket: str, proxy: Proxy
) -> None:
    fs = fsspec.filesystem(
        "s3", skip_instance_cache=True, config_kwargs={"retries": {"total_max_attempts": 1}}
    )
    fs.retries = 1
    ran = []

    def fn(path: str) -> None:
        ran.append(path)
        if len(ran) == 1:
            proxy.fault(1, Fault.ERROR_500)
        fs.pipe_file(f"{path}/out.txt", b"x")

    made = StepSpec("a", fn, output_path_prefix=bucket, retry=Retry(2, 0.0))
    StepRunner(1).run([made])
    store = open_store(bucket)
    assert [each.outcome for each in store.ledger.attempts()] == ["done", "failed"]
    assert len(set(ran)) == 2, "each attempt has a folder of its own"
