"""One of several processes that run the same random graph on one store.

    python racer.py STORE SEED SLOWNESS

Ends with 0 when every step is done and gave what it must. Each body leaves a line in STORE.ran.
"""

import os
import random
import sys
import time
from pathlib import Path

from treadle.execution import StepRunner, StepSpec


def witness(store: str, line: str) -> None:
    file = os.open(f"{store}.ran", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)


def steps(store: str, seed: int, slowness: float = 1, size: int = 30) -> list[StepSpec]:
    chance = random.Random(seed)
    made: list[StepSpec] = []
    for place in range(size):
        deps = chance.sample(made, min(len(made), chance.randrange(4)))
        made.append(step(store, f"s{place:02}", deps, chance.random() * 0.02 * slowness))
    return made


def step(store: str, name: str, deps: list[StepSpec], seconds: float) -> StepSpec:
    def body(path: str) -> str:
        for dep in deps:
            assert Path(dep.output_path, "out.txt").read_text() == dep.name
        with Path(path, "out.txt").open("x") as file:
            file.write(name[:1])
            file.flush()
            time.sleep(seconds)
            file.write(name[1:])
        witness(store, name)
        return name

    return StepSpec(name, body, deps, output_path_prefix=store)


def main(store: str, seed: int, slowness: float) -> None:
    made = steps(store, seed, slowness)
    order = random.Random(os.getpid()).sample(made, len(made))
    results = StepRunner(3).run(order)
    assert {results[each.id] for each in made} == {each.name for each in made}
    assert all(Path(each.output_path, "out.txt").read_text() == each.name for each in made)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
