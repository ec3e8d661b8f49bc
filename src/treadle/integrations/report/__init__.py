"""The report page: one HTML file that shows a topic map, what was found, and where each number comes from."""

from treadle.integrations.report.data import (
    Example,
    Fact,
    GrowthPoint,
    Point,
    ReportData,
    StepRow,
    Topic,
)
from treadle.integrations.report.render import render_report, write_report

__all__ = [
    "Example",
    "Fact",
    "GrowthPoint",
    "Point",
    "ReportData",
    "StepRow",
    "Topic",
    "render_report",
    "write_report",
]
