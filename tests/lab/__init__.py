"""A real fleet on one machine, for tests, demos and benchmarks."""

from .lab import Lab
from .node import Node
from .shell import LabError, Progress

__all__ = ["Lab", "LabError", "Node", "Progress"]
