"""`plan`, `why` and `graph`: what a run would do, without doing it."""

import json
import re
import xml.etree.ElementTree as ET

import pytest

from tests.integrations.cli.conftest import Project


def test_a_plan_of_nothing_built_knows_no_time(project: Project) -> None:
    told = project("plan", project.target)
    assert told.code == 0, told.err
    assert "4 steps: 4 to run" in told.out
    assert "how long it takes is not known" in told.out
    assert not (project.folder / ".treadle").exists()


def test_a_plan_predicts_by_former_builds(built: Project) -> None:
    """The longest path is what more machines cannot make shorter."""
    told = built("plan", built.target, "--force", "numbers")
    lines = told.out.splitlines()
    assert lines[0].split() == ["step", "arguments", "state", "time", "reason"]
    assert sorted(re.findall(r"numbers-\w+ +(upto=\d) +run ", told.out)) == ["upto=1", "upto=2"]
    assert re.search(r"◆ +report-\w+ +run +~\d.* it needs a step that has to run: total-", told.out)
    assert "longest path: numbers → total → report" in told.out
    assert f"next: treadle run {built.target} --force numbers" in told.out


def test_an_encoding_that_lacks_a_sign_is_no_error(built: Project) -> None:
    process = built.start("plan", built.target, "--force", "report", PYTHONIOENCODING="ascii")
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert r"\u25c6" in out


def test_a_plan_of_what_is_done_points_to_it(built: Project) -> None:
    told = built("plan", built.target)
    assert re.search(r"report-\w+ +cached", told.out)
    assert "4 steps: 4 cached" in told.out
    assert "next: what a step gave and where it is: treadle show report-" in told.out


def test_a_plan_shows_drift(built: Project) -> None:
    built.write(built.text.replace('f"total {value}"', 'f"sum {value}"'))
    told = built("plan", built.target)
    assert re.search(r"report-\w+ +drifted", told.out)
    assert f"treadle why {built.target} report-" in told.out
    assert "the code of its function has changed" in built("why", built.target, "report").out


def test_a_plan_says_who_is_at_work(built: Project) -> None:
    place = next(entry.place for entry in built.store.ledger.places() if entry.place.startswith("total/"))
    claim = built.store.ledger.claim(place, lambda: None, "another-run")
    try:
        told = built("plan", built.target, "--force", "total")
    finally:
        built.store.ledger.release(claim)  # type: ignore[arg-type]
    assert re.search(r"total-\w+ +running .*run another-run on ", told.out)
    assert re.search(r"report-\w+ +blocked", told.out)
    assert "1 running, 1 blocked" in told.out


def test_a_plan_as_json(built: Project) -> None:
    plan = json.loads(built("plan", built.target, "--force", "report", "--json").out)
    assert plan["counts"] == {"run": 1, "cached": 3, "drifted": 0, "running": 0, "blocked": 0}
    [report] = [step for step in plan["steps"] if step["name"] == "report"]
    assert report["reason"] == "it was asked for by force"
    assert plan["critical_path"] == [report["id"]]
    assert {step["label"] for step in plan["steps"]} == {"upto=1", "upto=2", ""}
    assert plan["seconds"] == report["seconds"]


def test_a_plan_of_very_many_names_those_to_run(project: Project) -> None:
    project.write(
        "from treadle import StepSpec\n\ndef body(path):\n    return 1\n\n"
        "def build():\n    return [StepSpec(f's{n}', body) for n in range(300)]\n"
    )
    told = project("plan", project.target)
    assert len(told.out.splitlines()) < 210
    assert "and 100 more; all of them: --json" in told.out
    assert len(json.loads(project("plan", project.target, "--json").out)["steps"]) == 300


def test_unused_versions_are_told_apart_from_the_plan(project: Project) -> None:
    told = project("plan", project.target, "--version-of", "totl=dev", "--json")
    assert json.loads(told.out)
    assert told.err == "treadle: no step has the name of these versions: totl\n"


@pytest.mark.parametrize("called", ["total", "tot", "ID"])
def test_why_takes_a_name_a_beginning_or_an_id(built: Project, called: str) -> None:
    told = built("why", built.target, built.ids()["total"] if called == "ID" else called)
    assert told.code == 0, told.err
    assert re.search(r"total-\w+ is served: build \w{12} of ", told.out)
    assert f"to build it anew: treadle run {built.target} --force total-" in told.out


def test_why_of_what_is_missing_and_not_needed_says_how_to_build_it(built: Project) -> None:
    """What needs it is done, so a run would pass it over."""
    built("forget", "total")
    told = built("why", built.target, "total")
    assert "is not there, and not needed: what needs it is done" in told.out
    assert "selected:\n  total-" in told.out
    [remedy] = re.findall(r"next: treadle (run .* --select total-\w+)\n", told.out)
    assert "1 step: 0 cached" not in built("run", built.target).err
    assert "1 done" in built(*remedy.split()).err


def test_why_names_the_field_that_differs(built: Project) -> None:
    built.write(built.text.replace("numbers(1), numbers(2)", "numbers(1), numbers(3)"))
    told = built("why", built.target, "total")
    assert "will run: there is no build of it" in told.out
    assert re.search(r"arguments\.values\[1\]: numbers-\w+ → numbers-\w+", told.out)


@pytest.mark.parametrize(
    ("step", "message"), [("totl", "did you mean 'total'"), ("numbers", "2 steps are called so; give one of")]
)
def test_why_of_no_step_or_of_several_is_refused(project: Project, step: str, message: str) -> None:
    told = project("why", project.target, step)
    assert told.code == 2
    assert message in told.err
    assert ("(upto=1)" in told.err) == (step == "numbers")


def test_graph_draws_all_steps_with_their_states(built: Project) -> None:
    told = built("graph", built.target, "--force", "report")
    assert told.out.startswith("flowchart LR")
    assert told.out.count("-->") == 3
    assert ":::run" in told.out
    assert "upto#61;1 · cached" in told.out


def test_graph_refuses_an_ending_that_it_does_not_know(project: Project) -> None:
    """A picture that is text would be found out only by whoever opens it."""
    told = project("graph", project.target, "--output", "g.png")
    assert told.code == 2
    assert "expected an ending out of .svg, .html" in told.err
    assert not (project.folder / "g.png").exists()
    assert project("graph", project.target, "--output", "g.png", "--format", "svg").code == 0


@pytest.mark.parametrize(("options", "kind"), [(["--output", "g.svg"], "svg"), (["--format", "svg"], "svg")])
def test_graph_writes_svg(project: Project, options: list[str], kind: str) -> None:
    told = project("graph", project.target, *options)
    assert told.code == 0, told.err
    text = (project.folder / "g.svg").read_text() if "--output" in options else told.out
    assert ET.fromstring(text).tag.endswith(kind)


def test_graph_writes_a_page(project: Project) -> None:
    told = project("graph", project.target, "--output", "g.html", "--version-of", "totl=dev")
    assert "4 steps, as html, in " in told.out
    assert "<html" in (project.folder / "g.html").read_text()
    assert told.err.count("totl") == 1
