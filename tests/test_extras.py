"""A missing package is best known before the work starts."""

import subprocess
import sys

import pytest

from treadle.errors import MissingExtraError
from treadle.extras import check_extra


def test_a_missing_package_gives_the_line_that_installs_it() -> None:
    with pytest.raises(
        MissingExtraError,
        match=r"^the demo needs .*'nowhere_to_be_found'.*'treadle\[demo\]' \(in a clone: .* '\.\[demo\]'\)$",
    ):
        check_extra("demo", "the demo", "json", "nowhere_to_be_found")


def test_what_is_there_is_not_imported() -> None:
    """Looking must cost nothing: torch alone takes a second to import."""
    code = (
        "import sys; from treadle.extras import check_extra; check_extra('x', 'a test', 'wave'); "
        "assert 'wave' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
