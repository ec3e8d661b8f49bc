"""The explicit form of a step: what its config says bears identity, what the context gives does not."""

from __future__ import annotations

import functools
import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from treadle.artifacts import Artifact
from treadle.errors import ArgumentError, ArtifactError, IdentityError, StepsFailedError
from treadle.execution import StepContext, StepRunner, lower, step
from treadle.execution.handles.arguments import Source, load_source
from treadle.execution.handles.artifact_step import ArtifactStep, materialized_config
from treadle.execution.handles.config_call import ConfigCall
from treadle.execution.handles.handle import Handle
from treadle.execution.handles.versions import Versions
from treadle.fray import ResourceConfig


@dataclass(frozen=True)
class Tokens(Artifact):
    vocabulary: int


@dataclass(frozen=True)
class Folder(Artifact):
    """A type of its own, with no more than a path."""


@dataclass(frozen=True)
class Config:
    source: str
    target: str
    vocabulary: int = 10
    threads: Any = 1


def tokenize(config: Config) -> Tokens:
    Path(config.target, "tokens.txt").write_text(Path(config.source, "text.txt").read_text())
    return Tokens(config.target, config.vocabulary)


def write(config: dict[str, str]) -> None:
    Path(config["target"], "text.txt").write_text(config["text"])


@step
def size_of(tokens: Tokens) -> int:
    return tokens.vocabulary * len(Path(tokens / "tokens.txt").read_text())


@step
def text_folder(ctx: StepContext) -> None:
    Path(ctx.output_path, "text.txt").write_text("abc")


def corpus(text: str = "ab") -> ArtifactStep[Artifact]:
    def build(ctx: StepContext) -> dict[str, str]:
        return {"target": ctx.output_path, "text": text}

    return ArtifactStep(name="corpus", version="2026.02.03", run=write, build_config=build)


def tokens(source: Handle[Any], **options: Any) -> ArtifactStep[Tokens]:
    vocabulary = options.pop("vocabulary", 10)

    def build(ctx: StepContext) -> Config:
        threads = ctx.runtime_arg("threads") if "runtime_args" in options else 1
        return Config(ctx.artifact_path(source), ctx.output_path, vocabulary, threads)

    given = {"name": "tokens", "version": "2026.02.03", "run": tokenize, "artifact_type": Tokens, **options}
    return ArtifactStep(build_config=build, deps=[source], **given)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_PREFIX", str(tmp_path))
    return tmp_path


def value_of(handle: Handle[Any]) -> Any:
    spec = lower(handle)
    return StepRunner().run([spec])[spec.id]


def test_it_lies_at_its_version_and_both_forms_mix(store: Path) -> None:
    handle = size_of(tokens(corpus()))
    assert value_of(handle) == 20
    assert value_of(size_of(tokens(text_folder()).at("2026.02.04"))) == 30
    assert lower(tokens(corpus())).output_path == f"{store}/tokens/2026.02.03"
    assert lower(tokens(corpus())).id == tokens(corpus()).id == "tokens@2026.02.03"


def test_what_run_returned_is_a_typed_artifact_at_its_final_place(store: Path) -> None:
    handle = tokens(corpus())
    assert value_of(handle) == value_of(handle) == Tokens(f"{store}/tokens/2026.02.03", 10)


def test_literals_bear_identity_and_what_comes_from_the_context_does_not() -> None:
    base = tokens(corpus()).hash_id
    assert tokens(corpus(), vocabulary=11).hash_id != base
    assert tokens(corpus("other text")).hash_id == base, "a version stands for the recipe of a dependency"
    assert tokens(corpus().at("2026.02.04")).hash_id != base
    with_args = {tokens(corpus(), runtime_args={"threads": n}).hash_id for n in (1, 2)}
    assert len(with_args) == 1
    assert lower(tokens(corpus()), "/x").hash_id == lower(tokens(corpus()), "/y").hash_id == base


def test_the_function_and_what_it_is_bound_to_are_part_of_the_identity() -> None:
    def run_of(k: int) -> Any:
        def run(config: Any) -> None:
            assert k

        return run

    def with_default(config: Any, k: int = 1) -> None:
        assert k

    def keyword(k: int) -> Any:
        with_default.__defaults__ = (k,)
        return one(with_default)

    def with_more(config: Any, x: int) -> None:
        assert x

    def one(run: Any) -> str:
        return ArtifactStep(name="n", version="dev", run=run, build_config=lambda ctx: 1).hash_id

    seen = [one(run_of(1)), one(run_of(2)), one(functools.partial(with_more, x=1)),
            one(functools.partial(with_more, x=2)), one(write), keyword(1), keyword(2)]  # fmt: skip
    assert len(set(seen)) == len(seen)
    assert one(run_of(1)) == seen[0]


def test_the_config_of_a_run_can_be_looked_at(store: Path) -> None:
    source = corpus()
    handle = tokens(source, runtime_args={"threads": 7})
    expected = Config(f"{store}/corpus/2026.02.03", f"{store}/tokens/2026.02.03", 10, 7)
    assert materialized_config(handle) == expected
    elsewhere = replace(expected, source="/s/corpus/2026.02.03", target="/s/tokens/2026.02.03")
    assert materialized_config(handle, "/s") == elsewhere
    with pytest.raises(ArgumentError, match=r"expected an ArtifactStep, got Handle\(text_folder-"):
        materialized_config(text_folder())  # type: ignore[arg-type]


def test_a_config_that_computes_with_the_context_is_refused() -> None:
    def compute(ctx: StepContext) -> int:
        return int(ctx.runtime_arg("threads")) * 2

    def branch(ctx: StepContext) -> str:
        return "a" if ctx.runtime_arg("threads") else "b"

    for build in (compute, branch):
        with pytest.raises(ArgumentError, match="step 'n': build_config failed when it was built with marks"):
            ArtifactStep(name="n", run=write, build_config=build, runtime_args={"threads": 1})


def test_a_function_that_captures_something_else_when_it_runs_is_refused() -> None:
    seen = [1]
    late: ArtifactStep[Any] = ArtifactStep(
        name="late", version="dev", run=lambda config: seen.clear(), build_config=lambda ctx: ctx.output_path
    )
    seen.append(2)
    with pytest.raises(
        StepsFailedError, match=r"captures, gives another recipe.*\(captured.seen\[1\]: absent → 2"
    ):
        StepRunner(1).run([lower(late)])


def test_a_dependency_that_is_not_stated_and_an_unknown_argument_are_refused() -> None:
    other = corpus()
    with pytest.raises(ArgumentError, match=r"artifact_path: expected one of its deps \(it has none\)"):
        ArtifactStep(name="n", run=write, build_config=lambda ctx: ctx.artifact_path(other))
    with pytest.raises(KeyError, match="unknown runtime argument of step 'n' 'x'"):
        ArtifactStep(name="n", run=write, build_config=lambda ctx: ctx.runtime_arg("x"))
    with pytest.raises(IdentityError, match=r"step 'n'\['config'\]: the callable"):
        ArtifactStep(name="n", run=write, build_config=lambda ctx: write)


@pytest.mark.parametrize(
    "options",
    [
        {"name": "../x"}, {"version": "1"}, {"run": 3}, {"build_config": None}, {"artifact_type": int},
        {"artifact_type": Tokens("p", 1)}, {"deps": [3]}, {"deps": "abc"}, {"timeout": 0}, {"retry": 3},
        {"resources": 1}, {"expected_fingerprint": "xyz"},
    ],
)  # fmt: skip
def test_wrong_options_are_refused_when_the_step_is_made(options: dict[str, Any]) -> None:
    given: dict[str, Any] = {"name": "n", "run": write, "build_config": lambda ctx: 1, **options}
    with pytest.raises(ArgumentError, match=r"step ('n'|name)"):
        ArtifactStep(**given)


def test_a_step_without_a_version_needs_one_when_it_is_lowered() -> None:
    handle: ArtifactStep[Artifact] = ArtifactStep(name="n", run=write, build_config=lambda ctx: {"n": 1})
    with pytest.raises(ArgumentError, match=r"step 'n': an ArtifactStep needs a version: give it one"):
        lower(handle)
    assert lower(handle, versions=Versions("dev")).id == "n@dev"
    assert lower(handle.at("2026.02.03")).id == "n@2026.02.03"


def test_another_type_than_was_stated_is_an_error_that_names_both() -> None:
    with pytest.raises(
        StepsFailedError, match=r"step 'tokens': run: expected an artifact of type Folder, got Tokens"
    ):
        value_of(tokens(corpus(), artifact_type=Folder))
    none = {"run": lambda config: None, "artifact_type": Tokens, "version": "2026.02.05"}
    with pytest.raises(StepsFailedError, match="expected an artifact of type Tokens, got None"):
        value_of(tokens(corpus(), **none))


def test_what_is_kept_is_checked_against_the_type_that_is_stated_now() -> None:
    """A version stands for whatever its recipe was, so an old build may be of an old type."""
    value_of(tokens(corpus()))
    renewed = lower(tokens(corpus(), artifact_type=Folder))
    with pytest.raises(
        ArtifactError, match="expected an artifact of type Folder, and what is kept there is of type Tokens"
    ):
        load_source(Source.of(renewed))


def test_none_is_an_artifact_of_the_type_when_its_path_says_all(store: Path) -> None:
    handle: ArtifactStep[Folder] = ArtifactStep(
        name="n",
        version="2026.02.03",
        artifact_type=Folder,
        build_config=lambda ctx: 1,
        run=lambda config: None,
    )
    assert value_of(handle) == Folder(f"{store}/n/2026.02.03")


def test_resources_and_a_place_of_its_own_are_no_identity(store: Path) -> None:
    wanted = ResourceConfig(cpu=2)
    spec = lower(tokens(corpus(), resources=wanted, override_path="mine", timeout=5))
    assert (spec.resources, spec.output_path, spec.timeout) == (wanted, f"{store}/mine", 5)
    assert spec.hash_id == tokens(corpus()).hash_id


def test_a_lowered_step_is_sent_without_the_graph_above_it() -> None:
    chain: Handle[Any] = corpus()
    for _ in range(3000):
        chain = ArtifactStep(name="n", version="dev", run=write, build_config=build_nothing, deps=[chain])
    fn = lower(chain).fn
    assert isinstance(fn, ConfigCall)
    sent = pickle.dumps(fn)
    assert len(sent) < 2000
    assert pickle.loads(sent).config("/p", lambda source: "x") == {}


def build_nothing(ctx: StepContext) -> dict[str, str]:
    return {}
