"""What holds for all tests."""

import signal

from hypothesis import settings

# A busy machine is no error; a failing example prints how to reproduce it.
settings.register_profile("treadle", deadline=None, print_blob=True)
settings.load_profile("treadle")

# A script that starts the tests in its background hands down that Ctrl-C is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
