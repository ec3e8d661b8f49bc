"""`treadle run` on an experiment: each step once, whoever runs it, and a next step in the end."""

import re
import shlex
import signal
from pathlib import Path

import pytest

from tests.integrations.cli.conftest import Project, until


def test_a_run_says_what_it_did_and_what_to_look_at(project: Project) -> None:
    ran = project("run", project.target)
    assert ran.code == 0, ran.err
    assert ran.err.splitlines()[0] == "4 steps: 0 cached, 4 to run"
    assert re.search(r"4 steps in .* 4 done", ran.err)
    [following] = [line for line in ran.out.splitlines() if line.startswith("next: ")]
    assert project(*shlex.split(following.partition(": treadle ")[2])).code == 0


def test_a_second_run_is_served(built: Project) -> None:
    ran = built("run", built.target)
    assert ran.code == 0
    assert re.search(r"4 steps in .* 4 cached", ran.err)


def test_a_failure_exits_with_1_and_lines_to_paste(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure one wants the log, not a search for it."""
    monkeypatch.setenv("BREAK", "1")
    ran = project("run", project.target)
    assert ran.code == 1
    assert re.search(
        r"total-\w+ +failed .*ValueError: no such \[shard\] \(experiment_\d+.py:\d+ in total\)", ran.err
    )
    assert re.search(r"report-\w+ +skipped +because of total-", ran.err)
    assert "treadle: 1 of 4 steps failed" in ran.err
    logs, why, again = (shlex.split(each) for each in re.findall(r": treadle (.*)", ran.err)[-3:])
    told = project(*logs).out
    assert "about to break" in told
    assert "total#1 error | Traceback (most recent call last):" in told
    assert "total#1 error | ValueError: no such [shard]" in told
    assert "failed: ValueError: no such [shard]" in project(*why).out
    monkeypatch.delenv("BREAK")
    assert project(*again).code == 0


def test_of_many_failures_the_first_logs_are_named_and_the_rest_counted(project: Project) -> None:
    project.write(project.text.replace('print(f"up to {upto}")', 'raise ValueError("no")'))
    ran = project("run", f"{project.target}:stream")
    assert ran.err.count("treadle logs numbers-") == 3
    assert "2 more failed: treadle ls --failed" in ran.err


def test_steps_of_one_name_are_told_apart(project: Project) -> None:
    ran = project("run", project.target)
    for number in (1, 2):
        assert re.search(rf"numbers-\w+ \(upto={number}\)  started", ran.err)
        assert re.search(rf"^numbers-\w+ \(upto={number}\) +done", ran.err, re.MULTILINE)


def test_a_file_is_the_same_experiment_from_every_folder(
    built: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (built.folder / "sub").mkdir()
    monkeypatch.chdir(built.folder / "sub")
    ran = built("run", f"../{built.target}", "--store", "../.treadle/store")
    assert "4 steps: 4 cached, 0 to run" in ran.err
    assert "has changed" not in ran.err


def test_an_iterator_is_taken_from_as_the_run_goes_on(project: Project) -> None:
    ran = project("run", f"{project.target}:stream")
    assert ran.code == 0, ran.err
    assert re.search(r"5 steps in .* 5 done", ran.err)


def test_options_reach_the_run(built: Project) -> None:
    forced = built("run", built.target, "--force", "total", "--max-concurrent", "1", "--on-failure", "stop")
    assert "2 done" in forced.err
    selected = built("run", built.target, "--select", "numbers", "--on-drift", "error")
    assert "2 cached" in selected.err


def test_a_dry_run_is_a_plan(project: Project) -> None:
    ran = project("run", project.target, "--dry-run")
    assert "4 steps: 4 to run" in ran.out
    assert not (project.folder / ".treadle").exists()
    assert f"next: treadle run {project.target}\n" in ran.out


def test_versions_are_given_and_the_unused_are_told(project: Project) -> None:
    """A typo in the name of a step would otherwise do nothing, in silence."""
    ran = project(
        "run",
        project.target,
        "--version-of",
        "report=dev",
        "--version-of",
        "totl=2026.02.03",
        "--select",
        "report",
    )
    assert ran.code == 0, ran.err
    assert "no step has the name of these versions: totl" in ran.err
    assert project.ids()["report"] == "report@dev"


def test_the_version_of_a_run_is_that_of_every_step(project: Project) -> None:
    ran = project("run", f"{project.target}:stream", "--version", "2026.02.03", "--store", "elsewhere")
    assert ran.code == 2  # five steps of one name and one version
    assert "give one of them another version" in ran.err


def test_drift_is_told_and_how_to_build_anew(built: Project) -> None:
    built.write(built.text.replace('f"total {value}"', 'f"sum {value}"'))
    ran = built("run", built.target)
    assert "the code of its function has changed since it was built" in ran.err
    assert "--on-drift rebuild" in ran.err
    assert "1 done" in built("run", built.target, "--on-drift", "rebuild").err
    assert "4 cached" in built("run", built.target, "--on-drift", "error").err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "FILE", "--param", "a=1"], "is an experiment, and --param is for manifests only"),
        (["run", "FILE", "--output", "o", "--step-id", "x"], "--output, --step-id is for manifests only"),
        (["run", "words.yaml", "--select", "a"], "is a manifest, and --select is for experiments only"),
        (["run", "words.yml", "--dry-run"], "is a manifest, and --dry-run is for experiments only"),
        (["run", "FILE", "--on-drift", "bogus"], "--on-drift"),
        (["run", "FILE", "--max-concurrent", "0"], "max_concurrent"),
        (["run", "FILE", "--force", "totl"], "did you mean 'total'"),
        (["run", "FILE", "--select", "totl"], "did you mean 'total'"),
        (["run", "FILE", "--version", "yesterday"], "'yesterday'"),
        (["run", "FILE", "--version-of", "total"], "--version-of 'total': expected NAME=VALUE"),
        (["run", "FILE", "--store", ""], "expected the path of a folder"),
        (["run", "missing.py"], "missing.py"),
        (["run", "FILE:biuld"], "did you mean 'build'"),
    ],
)
def test_a_wrong_request_exits_with_2(arguments: list[str], message: str, project: Project) -> None:
    """What does not fit the kind of target is refused, not left aside."""
    ran = project(*(each.replace("FILE", project.target) for each in arguments))
    assert ran.code == 2
    assert message in " ".join(ran.err.replace("│", "").split())
    assert not (project.folder / ".treadle").exists()


def test_a_spec_with_a_store_of_its_own_is_not_moved(project: Project) -> None:
    """`--store` would name a place where nothing arrives."""
    project.write(
        "from treadle import StepSpec\n\ndef body(path):\n    return 1\n\nspec = StepSpec('one', body)\n"
    )
    ran = project("run", project.target, "--store", "elsewhere")
    assert ran.code == 2
    assert "leave --store out, or set TREADLE_PREFIX" in ran.err


def test_several_processes_share_the_work(project: Project) -> None:
    """Each step runs once, and each process tells what others did."""
    gate = project.folder / "gate"
    first = project.start("run", project.target, GATE=str(gate))
    while not Path(f"{gate}.reached").exists():
        assert first.poll() is None
    second = project.start("run", project.target, GATE=str(gate))
    waits = rf"total-\w+ +waits for run \S+ on \S+, process {first.pid}"
    told = until(second, waits)
    gate.touch()
    (_, here), (_, there) = first.communicate(), second.communicate()
    assert (first.returncode, second.returncode) == (0, 0), (here, there)
    assert len([note for note in project.store.ledger.attempts() if note.outcome == "done"]) == 4
    assert told.startswith("4 steps: 2 cached, 2 to run")
    assert len(re.findall(waits, told + there)) == 1
    assert re.search(rf"total-\w+ +done elsewhere +by process {first.pid} on ", there)
    assert re.search(r"4 steps in .* done elsewhere", there)
    assert re.search(r"4 steps in .* done", here)


def test_ctrl_c_keeps_what_is_done_and_exits_with_130(project: Project) -> None:
    gate = project.folder / "gate"
    process = project.start("run", project.target, GATE=str(gate))
    while not Path(f"{gate}.reached").exists():  # else the step may not have begun, and never does
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    until(process, "^stopping: waiting for total")
    gate.touch()
    _, rest = process.communicate()
    assert process.returncode == 130, rest
    assert "3 of 4 steps in" in rest
    assert "what is done is kept" in rest
    assert "1 done" in project("run", project.target).err


def test_ctrl_c_is_no_failure_in_any_command(project: Project) -> None:
    project.write(
        project.text.replace(
            '    print(f"up to {upto}")\n',
            "    import sys\n\n    from treadle.fray import stop_requested\n\n"
            "    print('looking', file=sys.stderr)\n"
            "    while not stop_requested():\n        time.sleep(0.01)\n",
        )
    )
    process = project.start("run", project.target)
    until(process, "looking")
    until(process, "looking")
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate()
    assert re.search(r"2 of 4 steps in .*: 2 cancelled", rest), rest
    assert "failed" not in rest
    assert "2 cancelled" in project("history").out
    assert "cancelled" in project("ls").out
    assert "no step that failed" in project("ls", "--failed").out


def test_a_plan_counts_with_the_workers_of_the_cluster(built: Project) -> None:
    (built.folder / "treadle.toml").write_text(
        '[clusters.three]\nbackend = "ray"\nmax_workers = 3\naddress = "nowhere:1"\n'
    )
    for options, at_once in (((), 8), (("--cluster", "three"), 3), (("--max-concurrent", "2"), 2)):
        told = built("plan", built.target, "--force", "numbers", *options)
        assert f"with {at_once} at once" in told.out


@pytest.mark.parametrize("command", ["run", "plan"])
def test_too_large_a_step_is_refused_before_a_word_is_said(project: Project, command: str) -> None:
    project.write(
        "from treadle import step\nfrom treadle.fray import ResourceConfig\n\n\n"
        "@step(resources=ResourceConfig(cpu=64))\ndef big() -> int:\n    return 1\n\n\nhandle = big()\n"
    )
    (project.folder / "treadle.toml").write_text('[clusters.two]\nbackend = "processes"\ncpu = 2\n')
    told = project(command, project.target, "--cluster", "two")
    assert told.code == 2
    assert told.out == ""
    assert re.fullmatch(r"treadle: step big-\w+: resources: cpu: 64 asked for, .* 2 in all\n", told.err)


def test_the_folder_of_a_run_is_the_one_that_was_asked_for(project: Project) -> None:
    ran = project("run", project.target, "--store", "elsewhere")
    assert ran.code == 0, ran.err
    assert f"--store {project.folder / 'elsewhere'}" in ran.out
    [following] = re.findall(r": treadle (.*)", ran.out)
    assert project(*shlex.split(following)).code == 0
    assert not Path(".treadle").exists()


def test_a_cluster_is_where_the_steps_run(project: Project) -> None:
    ran = project("run", project.target, "--cluster", "processes")
    assert ran.code == 0, ran.err
    assert re.search(r"4 steps in .* 4 done", ran.err)
    assert re.search(r"4 steps in .* 4 cached", project("run", project.target, "--cluster", "local").err)


def test_a_failure_on_a_cluster_names_the_line_and_the_options_to_try_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BREAK", "1")
    ran = project("run", project.target, "--cluster", "processes")
    assert ran.code == 1
    assert re.search(r"ValueError: no such \[shard\] \(experiment_\d+.py:\d+ in total\)", ran.err)
    assert re.search(r"to try again: treadle run .* --cluster processes", ran.err)
    logs = shlex.split(re.findall(r": treadle (logs .*)", ran.err)[0])
    assert "total#1 error | ValueError: no such [shard]" in project(*logs).out


@pytest.mark.parametrize("command", ["run", "plan"])
def test_an_unknown_cluster_is_refused_with_the_known(project: Project, command: str) -> None:
    ran = project(command, project.target, "--cluster", "procesess")
    assert ran.code == 2
    assert "unknown cluster 'procesess'; did you mean 'processes'?" in ran.err
    assert "local, processes, ray" in ran.err
