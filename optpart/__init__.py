"""True optima, proven bounds and heuristics for placing dataflow graphs on unlike devices."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optpart.cluster import Cluster as Cluster
    from optpart.cluster import Device as Device
    from optpart.errors import InputError as InputError
    from optpart.errors import OptpartError as OptpartError
    from optpart.errors import UnsupportedError as UnsupportedError
    from optpart.formats.detect import read_instance as read_instance
    from optpart.gap import compare as compare
    from optpart.graph import Graph as Graph
    from optpart.graph import GraphBuilder as GraphBuilder
    from optpart.instance import Durations as Durations
    from optpart.instance import Instance as Instance
    from optpart.instance import Model as Model
    from optpart.library import load as load
    from optpart.methods import register as register
    from optpart.methods import solve as solve
    from optpart.ordering.efficiency import attainable as attainable
    from optpart.ordering.efficiency import makespan_bounds as makespan_bounds
    from optpart.rational import RationalArray as RationalArray
    from optpart.result import Budget as Budget
    from optpart.result import Result as Result
    from optpart.result import Status as Status
    from optpart.result import conclude as conclude
    from optpart.schedule import Schedule as Schedule
    from optpart.schedule import Transfers as Transfers
    from optpart.schedule import retime as retime
    from optpart.verify import Violation as Violation

__version__ = "0.2.0"

# Loaded when first used: the command line must not wait for a solver to print its help.
# A name must not be that of a module of the package, which would take its place once imported.
_HOME = {
    "Cluster": "cluster",
    "Device": "cluster",
    "InputError": "errors",
    "OptpartError": "errors",
    "UnsupportedError": "errors",
    "read_instance": "formats.detect",
    "compare": "gap",
    "Graph": "graph",
    "GraphBuilder": "graph",
    "Durations": "instance",
    "Instance": "instance",
    "Model": "instance",
    "load": "library",
    "register": "methods",
    "solve": "methods",
    "attainable": "ordering.efficiency",
    "makespan_bounds": "ordering.efficiency",
    "RationalArray": "rational",
    "Budget": "result",
    "Result": "result",
    "Status": "result",
    "conclude": "result",
    "Schedule": "schedule",
    "Transfers": "schedule",
    "retime": "schedule",
    "Violation": "verify",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"optpart.{_HOME[name]}"), name)
    raise AttributeError(f"module 'optpart' has no attribute {name!r}")
