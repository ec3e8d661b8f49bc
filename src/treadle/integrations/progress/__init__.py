"""Shows the progress of a run of steps, and a summary at the end."""

from treadle.integrations.progress.display import Progress

__all__ = ["Progress"]
