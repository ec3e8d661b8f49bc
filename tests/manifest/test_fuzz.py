"""Whatever stands in a file, the manifest room answers with a manifest or with a ManifestError."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.manifest.manifests import as_yaml, manifests, spoilt
from treadle.errors import ManifestError
from treadle.manifest import (
    Manifest,
    bind_manifest,
    explain_manifest,
    load_manifest_path,
    merged_params_from_manifest,
    read_manifest,
)

VARIABLES = {"run.id": "r1", "run.output": "/out"}
QUICK = settings(
    max_examples=100,
    deadline=None,
    print_blob=True,  # the seed of a failure, ready to paste
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
LONG = settings(QUICK, max_examples=5_000)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One folder for all examples: each writes its files anew."""
    monkeypatch.chdir(tmp_path)


def survives(text: str, part: str) -> None:
    """Read and explain; anything but a ManifestError is a fault."""
    Path("m.yaml").write_text(text, "utf-8", "surrogatepass")
    Path("part.yaml").write_text(part, "utf-8", "surrogatepass")
    note(text)
    with suppress(ManifestError):
        manifest = read_manifest("m.yaml", {}, VARIABLES)
        manifest.problem("run.type", "a", "b")
        explained("m.yaml")


def explained(path: str) -> tuple[Manifest, dict[str, Any], str]:
    document = load_manifest_path(path)
    params = merged_params_from_manifest(document, {})
    manifest = bind_manifest(document, params, VARIABLES)
    return manifest, dict(params.values), explain_manifest(document, params, (), manifest)


def round_trips(manifest: dict[str, Any], names: list[str]) -> None:
    Path("m.yaml").write_text(as_yaml(manifest, names))
    note(as_yaml(manifest, names))
    first, params, text = explained("m.yaml")
    note(text)
    Path("again.yaml").write_text(text)
    second, again, repeated = explained("again.yaml")
    assert first.model_dump(exclude={"params"}) == second.model_dump(exclude={"params"})
    assert params == again
    assert [line.split("  #")[0] for line in text.splitlines()] == [
        line.split("  #")[0] for line in repeated.splitlines()
    ]


shuffled = manifests().flatmap(lambda made: st.tuples(st.just(made), st.permutations(list(made))))
broken = shuffled.flatmap(lambda pair: st.tuples(spoilt(as_yaml(*pair)), spoilt(as_yaml(*pair))))


@QUICK
@given(made=shuffled)
def test_a_manifest_survives_being_explained(made: tuple[dict[str, Any], list[str]]) -> None:
    """What `explain` prints is the same manifest: whoever checks it in loses nothing."""
    round_trips(*made)


@QUICK
@given(texts=broken)
def test_a_spoilt_manifest_is_refused_in_words(texts: tuple[str, str]) -> None:
    survives(*texts)


@QUICK
@given(text=st.text(max_size=200), part=st.text(max_size=50))
def test_any_text_is_refused_in_words(text: str, part: str) -> None:
    survives(text, part)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@LONG
@given(made=shuffled)
def test_many_manifests_survive_being_explained(made: tuple[dict[str, Any], list[str]]) -> None:
    round_trips(*made)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@LONG
@given(texts=broken)
def test_many_spoilt_manifests_are_refused_in_words(texts: tuple[str, str]) -> None:
    survives(*texts)
