"""How a step is written: as the call of a function, in the explicit form, or as data that is there."""
