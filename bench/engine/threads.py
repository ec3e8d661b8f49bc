"""How many threads each engine has."""

import os

THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))
