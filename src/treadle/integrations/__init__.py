"""What the outside calls: the command line, the progress of a run, the report page."""
