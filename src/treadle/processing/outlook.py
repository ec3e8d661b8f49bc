"""The checkpoint of a run, and what is in it before the run begins."""

from __future__ import annotations

from collections.abc import Collection

from treadle.manifest import Manifest
from treadle.processing.choice import Entry, Pattern, choose
from treadle.processing.compile import StoragePlan, scratch_specs
from treadle.processing.context import RunContext
from treadle.processing.fingerprint import fingerprint
from treadle.processing.transforms import transform_code
from treadle.storage import Checkpoint
from treadle.storage.outlook import Kept, kept_in


def checkpoint_of(
    manifest: Manifest, ctx: RunContext, plan: StoragePlan, pattern: Pattern
) -> Checkpoint | None:
    """Where the finished units of a run are kept, and for what they count; None when they are not."""
    if plan.checkpoint is None:
        return None
    identity = fingerprint(manifest, ctx, [pattern.runner, *transform_code(manifest)])
    return Checkpoint(plan.checkpoint, identity)


def kept_of(
    manifest: Manifest, ctx: RunContext, plan: StoragePlan, identities: Collection[str]
) -> Kept | None:
    """What a run would find of units of these identities in its checkpoint; None when there is nothing.

    Raises ManifestError for an unknown run type.
    """
    pattern = choose(manifest)
    if isinstance(pattern, Entry) or (checkpoint := checkpoint_of(manifest, ctx, plan, pattern)) is None:
        return None
    return kept_in(checkpoint, {**plan.outputs, **scratch_specs(pattern.scratch, ctx)}, identities)
