"""All contenders, with what their settings are called on the page; what is not named is as they come."""

from __future__ import annotations

from collections.abc import Iterator

from bench.engine.contender import FIRST, Contender
from bench.engine.workload import CASES, MANY, ONE, PREFIX

_EXACT = ("float32", "float32")
_HALF = ("bf16", "bfloat16")
_BYTES = ("int8", "int8")
_SLOTS = "64 requests at once, 512 tokens a step"
_BUCKETS = (1, 2, 4, 8, 16, 32, 64)
_VLLM = "max_num_seqs=64, max_num_batched_tokens=2048, 2 GB of cache, in one process"
_PIPELINE = "ContinuousBatchingPipeline: max_num_seqs=64, max_num_batched_tokens=2048, 2 GB of cache"
_MEMORY = {"VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
_COMPILED = "; it compiles at each start, with what its compiler kept of earlier ones"


def _treadle() -> Iterator[Contender]:
    for short, precision in (_EXACT, _HALF, _BYTES):
        name = f"treadle, {short}"
        first = (FIRST,) if precision == "bfloat16" else ()
        yield Contender(name, "ours", "treadle", precision, _SLOTS, (*CASES, *first))
        yield Contender(
            f"{name}, planned ahead",
            "ours",
            "treadle",
            precision,
            f"{_SLOTS}; plan_ahead=True",
            (MANY, ONE),
            {"plan_ahead": True},
        )
        yield Contender(
            f"{name}, no prefix cache",
            "ours",
            "treadle",
            precision,
            f"{_SLOTS}; prefix_cache=False",
            (PREFIX,),
            {"prefix_cache": False},
        )
    settings = f"{_SLOTS}; kernels='torch', which needs no compiler"
    for name, more, options in (
        ("torch alone", "", {}),
        ("torch in buckets", f"; buckets={_BUCKETS}", {"buckets": _BUCKETS}),
    ):
        yield Contender(
            f"treadle, float32, {name}",
            "ours",
            "treadle",
            "float32",
            settings + more,
            (MANY, ONE),
            {"kernels": "torch", **options},
        )


def _vllm() -> Iterator[Contender]:
    def one(name: str, precision: str, settings: str, cases: tuple[str, ...], **options: object) -> Contender:
        return Contender(name, "vllm_cpu", "vllm-cpu", precision, settings, cases, options, _MEMORY)

    for short, precision in (_EXACT, _HALF):
        first = (FIRST,) if precision == "bfloat16" else ()
        yield one(f"vLLM eager, {short}", precision, f"enforce_eager=True; {_VLLM}", CASES, compiled=False)
        yield one(f"vLLM compiled, {short}", precision, f"{_VLLM}{_COMPILED}", (*CASES, *first))
    settings = f"enforce_eager=True, enable_prefix_caching=False; {_VLLM}"
    yield one(
        "vLLM eager, bf16, no prefix cache", "bfloat16", settings, (PREFIX,), compiled=False, prefixes=False
    )


def _openvino() -> Iterator[Contender]:
    def one(name: str, precision: str, settings: str, cases: tuple[str, ...], **options: object) -> Contender:
        return Contender(name, "openvino", "openvino-genai", precision, settings, cases, options)

    for short, precision in (_EXACT, _HALF):
        yield one(f"OpenVINO GenAI, {short}", precision, _PIPELINE, CASES)
    settings = f"{_PIPELINE}; enable_prefix_caching=False"
    yield one("OpenVINO GenAI, bf16, no prefix cache", "bfloat16", settings, (PREFIX,), prefixes=False)


def _transformers() -> Iterator[Contender]:
    for name, module, settings in (
        ("transformers, padded", "transformers_padded", "generate, 16 at once, padded, sorted by length"),
        (
            "transformers, continuous",
            "transformers_continuous",
            "generate_batch, attention paged|sdpa, 512 tokens a step, pages of 256 tokens",
        ),
    ):
        for short, precision in (_EXACT, _HALF):
            yield Contender(f"{name}, {short}", module, "transformers", precision, settings, (MANY, ONE))


def _llama_cpp() -> Iterator[Contender]:
    settings = "16 slots filled as they fall free, n_batch=2048, n_ubatch=512, keys and values in f16"
    for short, precision in (_EXACT, _HALF, ("Q8_0", "int8")):
        yield Contender(
            f"llama.cpp, {short}", "llama_cpp", "llama-cpp-python", precision, settings, (MANY, ONE)
        )


CONTENDERS = (*_treadle(), *_vllm(), *_openvino(), *_llama_cpp(), *_transformers())


def contenders(case: str) -> tuple[Contender, ...]:
    """Those of one case."""
    return tuple(each for each in CONTENDERS if case in each.cases)


def contender(name: str) -> Contender:
    """One of them."""
    return next(each for each in CONTENDERS if each.name == name)
