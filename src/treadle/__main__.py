"""The command, also where the folder of programs is not on the path: `python -m treadle`."""

import signal
import sys


def main() -> int:
    """Run the command line and return the exit code."""
    try:
        from treadle.integrations.cli.app import main as run
    except KeyboardInterrupt:  # nothing has begun, so there is nothing to say
        return 128 + signal.SIGINT
    return run()


if __name__ == "__main__":
    sys.exit(main())
