"""A process whose steps go on until they are told otherwise.

    python patient.py STORE MODE

`long`: one step works until it is asked to stop, and leaves `STORE.began` and `STORE.asked`; when the file
`STORE.deaf` is there it returns as if nothing had been said. `short`: the same step, at once done. `many`:
twelve steps, four at a time, that work until they are asked to stop; each leaves a line in `STORE.ran`.
`stubborn`: as `many`, and they do not stop. At the end the outcomes are printed.
"""

import os
import sys
import time
from pathlib import Path

from treadle.errors import StoppedError
from treadle.execution import StepRunner, StepSpec
from treadle.fray import stop_requested


def until_asked() -> None:
    while not stop_requested():
        time.sleep(0.002)


def single(store: str, mode: str) -> StepSpec:
    def body(path: str) -> str:
        Path(path, f"{mode}.txt").write_text(mode)
        if mode == "long":
            Path(f"{store}.began").touch()
            until_asked()
            Path(f"{store}.asked").touch()
            if not Path(f"{store}.deaf").exists():
                raise StoppedError("as it was asked to")
        return mode

    return StepSpec("one", body, output_path_prefix=store)


def several(store: str, mode: str) -> list[StepSpec]:
    def body(path: str) -> None:
        Path(path, "half.txt").touch()
        file = os.open(f"{store}.ran", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, b"x\n")
        os.close(file)
        if mode == "stubborn":
            time.sleep(120)
        until_asked()
        raise StoppedError("as it was asked to")

    first = StepSpec("first", lambda path: None, output_path_prefix=store)
    return [
        first,
        *(StepSpec(f"s{place:02}", body, [first], output_path_prefix=store) for place in range(12)),
    ]


def main(store: str, mode: str) -> None:
    steps = [single(store, mode)] if mode in ("long", "short") else several(store, mode)
    results = StepRunner(4).run(steps)
    for key, value in results.items():
        print(type(results.outcomes[key].outcome).__name__, value)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
