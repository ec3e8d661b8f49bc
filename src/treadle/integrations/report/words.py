"""Numbers and texts as the page prints them."""

from __future__ import annotations


def thousands(number: int) -> str:
    """1832123 -> 1,832,123."""
    return f"{number:,}"


def short_count(number: float) -> str:
    """25000 -> 25,000; 1500000 -> 1.5 M."""
    return f"{number / 1e6:g} M" if number >= 1e6 else f"{number:,g}" if number < 1e4 else f"{number:,.0f}"


def percent(share: float) -> str:
    """0.0784 -> 7.8 %."""
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def duration(seconds: float) -> str:
    """4.23 -> 4.2 s; 84 -> 1 min 24 s."""
    if seconds < 60:
        return f"{seconds:.1f}\N{NO-BREAK SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}\N{NO-BREAK SPACE}min {rest}\N{NO-BREAK SPACE}s"


def excerpt(text: str, length: int) -> str:
    """At most about `length` characters of `text`, on one line, cut between words."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    cut = line[: length + 1].rsplit(" ", 1)[0][:length]
    return cut.rstrip(",;:.\N{EM DASH}- ") + "\N{HORIZONTAL ELLIPSIS}"
