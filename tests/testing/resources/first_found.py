"""How a fault is looked for."""

from hypothesis import Phase, settings

from treadle.testing.resources import THOROUGH

# Without the search for the shortest sequence, which takes most of the time.
FIRST_FOUND = settings(THOROUGH, phases=[Phase.generate], report_multiple_bugs=False)
