"""One file for each run type."""
