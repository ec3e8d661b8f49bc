"""Shows the progress of a run of steps, and a summary at the end."""
