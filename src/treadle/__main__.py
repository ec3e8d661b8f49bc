"""`python -m treadle`: the command, where the folder of programs is not on the path."""

import sys

from treadle.integrations.cli.app import main

sys.exit(main())
