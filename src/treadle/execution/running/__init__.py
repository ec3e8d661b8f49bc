"""How steps are run: the loop, and one attempt at one step in written order."""
