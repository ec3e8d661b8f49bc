"""Jobs on a Ray cluster."""

from treadle.fray.ray.client import RayClient

__all__ = ["RayClient"]
