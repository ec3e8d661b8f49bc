"""One file per format: how it is read and how it is written."""
