"""Proves that resources of the engine keep their contract; needs hypothesis."""

from treadle.testing.resources.check import THOROUGH, check_resource, check_resources

__all__ = ["THOROUGH", "check_resource", "check_resources"]
