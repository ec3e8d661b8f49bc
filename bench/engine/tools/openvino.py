"""OpenVINO GenAI: its pipeline with continuous batching, stepped from here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.engine.threads import THREADS
from bench.engine.weights import openvino_folder


def load(precision: str, *, prefixes: bool = True) -> OpenVino:
    """The pipeline for 64 requests at once; its cache is as large as theirs all together."""
    import openvino
    import openvino_genai

    settings = openvino_genai.SchedulerConfig()
    settings.cache_size = 2  # GB
    settings.max_num_seqs = 64
    settings.max_num_batched_tokens = 2048
    settings.enable_prefix_caching = prefixes
    hint = {"float32": openvino.Type.f32, "bfloat16": openvino.Type.bf16}[precision]
    given = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": THREADS, "KV_CACHE_PRECISION": hint}
    folder = openvino_folder()
    return OpenVino(openvino_genai.ContinuousBatchingPipeline(str(folder), settings, "CPU", given))


class OpenVino:
    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline
        self._asked = 0

    def encode(self, text: str) -> Sequence[int]:
        ids: Sequence[int] = (
            self._pipeline.get_tokenizer().encode(text, add_special_tokens=False).input_ids.data[0].tolist()
        )
        return ids

    def answer(self, prompts: list[list[int]], new: int) -> tuple[list[list[int]], list[float]]:
        import openvino
        import openvino_genai

        greedy = openvino_genai.GenerationConfig(max_new_tokens=new, ignore_eos=True, do_sample=False)
        handles = [
            self._pipeline.add_request(
                self._asked + at, openvino.Tensor(np.array([prompt], np.int64)), greedy
            )
            for at, prompt in enumerate(prompts)
        ]
        self._asked += len(prompts)
        firsts: dict[int, float] = {}
        answers: list[list[int]] = [[] for _ in prompts]
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
            for at, handle in enumerate(handles):
                while handle.can_read():
                    firsts.setdefault(at, time.perf_counter())
                    for each in handle.read().values():
                        answers[at] += each.generated_ids
        return answers, list(firsts.values())
