"""True optima, proven bounds and heuristics for placing dataflow graphs on unlike devices."""

from optpart.cluster import Cluster, Device
from optpart.errors import InputError, OptpartError, UnsupportedError
from optpart.graph import Graph, GraphBuilder
from optpart.instance import Durations, Instance, Model
from optpart.rational import RationalArray
from optpart.schedule import Schedule, Transfers, retime
from optpart.verify import Violation, verify

__version__ = "0.1.0"

__all__ = [
    "Cluster",
    "Device",
    "Durations",
    "Graph",
    "GraphBuilder",
    "InputError",
    "Instance",
    "Model",
    "OptpartError",
    "RationalArray",
    "Schedule",
    "Transfers",
    "UnsupportedError",
    "Violation",
    "__version__",
    "retime",
    "verify",
]
