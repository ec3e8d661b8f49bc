"""Measures of treadle alone; each module has `measure(folder, quick)`, which gives rows as it goes on."""

from bench.dag.measures import chains, cpu, generator, growth, latency, memory, plan
from bench.dag.measures.measure import Measure

MEASURES: dict[str, Measure] = {
    each.name: each
    for each in (
        growth.MEASURE,
        chains.MEASURE,
        memory.MEASURE,
        plan.MEASURE,
        generator.MEASURE,
        latency.MEASURE,
        cpu.MEASURE,
    )
}

__all__ = ["MEASURES"]
