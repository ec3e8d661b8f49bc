"""One module for each engine: `load` gives something that answers; imported in the children alone."""
