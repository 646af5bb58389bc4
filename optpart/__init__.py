"""True optima, proven bounds and heuristics for placing dataflow graphs on unlike devices."""

import sys
from importlib import import_module
from inspect import isfunction
from typing import TYPE_CHECKING, Any

from optpart.base.arguments import checked
from optpart.base.showing import shown_by
from optpart.version import __version__

if TYPE_CHECKING:
    from optpart.api import apart as apart
    from optpart.api import bounds as bounds
    from optpart.api import certify as certify
    from optpart.api import certify_bound as certify_bound
    from optpart.api import check as check
    from optpart.api import compare as compare
    from optpart.api import compare_orders as compare_orders
    from optpart.api import costed as costed
    from optpart.api import divide as divide
    from optpart.api import draw as draw
    from optpart.api import export as export
    from optpart.api import load as load
    from optpart.api import pareto as pareto
    from optpart.api import pipeline_problem as pipeline_problem
    from optpart.api import plan as plan
    from optpart.api import recommend as recommend
    from optpart.api import recompute as recompute
    from optpart.api import result_from_pyjobshop as result_from_pyjobshop
    from optpart.api import robust as robust
    from optpart.api import save as save
    from optpart.api import sensitivity as sensitivity
    from optpart.api import serve as serve
    from optpart.api import simulate as simulate
    from optpart.api import solve as solve
    from optpart.api import sweep as sweep
    from optpart.api import verify as verify
    from optpart.api import workload as workload
    from optpart.api import write_lesson as write_lesson
    from optpart.api import write_report as write_report
    from optpart.applications.ordering.efficiency import attainable as attainable
    from optpart.applications.ordering.efficiency import makespan_bounds as makespan_bounds
    from optpart.applications.training.cluster import TrainingCluster as TrainingCluster
    from optpart.applications.training.compiler import compile_strategy as compile_strategy
    from optpart.applications.training.graph import TrainingGraph as TrainingGraph
    from optpart.applications.training.strategy import Strategy as Strategy
    from optpart.base.errors import CertificateError as CertificateError
    from optpart.base.errors import InputError as InputError
    from optpart.base.errors import OptpartError as OptpartError
    from optpart.base.errors import UnsupportedError as UnsupportedError
    from optpart.interop.formats.detect import read_instance as read_instance
    from optpart.interop.formats.pyjobshop import from_pyjobshop as from_pyjobshop
    from optpart.interop.formats.pyjobshop import to_pyjobshop as to_pyjobshop
    from optpart.methods.registry import register as register
    from optpart.methods.registry import supporting as supporting
    from optpart.placing.place import place as place
    from optpart.placing.runtimes import Placed as Placed
    from optpart.placing.torch_modules import PlacedModule as PlacedModule
    from optpart.problem.cluster import Cluster as Cluster
    from optpart.problem.cluster import Device as Device
    from optpart.problem.durations import Durations as Durations
    from optpart.problem.graph import Graph as Graph
    from optpart.problem.graph import GraphBuilder as GraphBuilder
    from optpart.problem.instance import Instance as Instance
    from optpart.problem.model import Model as Model
    from optpart.problem.rational import RationalArray as RationalArray
    from optpart.problem.workload import Work as Work
    from optpart.problem.workload import Workload as Workload
    from optpart.solution.goal import Goal as Goal
    from optpart.solution.result import Budget as Budget
    from optpart.solution.result import Result as Result
    from optpart.solution.result import Status as Status
    from optpart.solution.result import conclude as conclude
    from optpart.solution.schedule import Schedule as Schedule
    from optpart.solution.schedule import Transfers as Transfers
    from optpart.solution.schedule import retime as retime
    from optpart.solution.termination import Termination as Termination
    from optpart.solution.verifier import Violation as Violation
    from optpart.study.dataset import load_set as load_set
    from optpart.study.report.plots import plot_comparisons as plot_comparisons
    from optpart.study.report.progress import live as live
    from optpart.study.worst.search import worst as worst
    from optpart.training_api import compare_strategies as compare_strategies
    from optpart.training_api import draw_strategy as draw_strategy
    from optpart.training_api import export_strategy as export_strategy
    from optpart.training_api import solve_strategy as solve_strategy
    from optpart.training_api import strategy_bound as strategy_bound
    from optpart.training_api import strategy_question as strategy_question
    from optpart.training_api import verify_strategy as verify_strategy


# Loaded when first used: the command line must not wait for a solver to print its help.
# A name must not be that of a module of this package, which would take its place once imported.
_HOME = {
    "Budget": "solution.result",
    "CertificateError": "base.errors",
    "Cluster": "problem.cluster",
    "Device": "problem.cluster",
    "Durations": "problem.instance",
    "Goal": "solution.goal",
    "Graph": "problem.graph",
    "GraphBuilder": "problem.graph",
    "InputError": "base.errors",
    "Instance": "problem.instance",
    "Model": "problem.instance",
    "OptpartError": "base.errors",
    "Placed": "placing.runtimes",
    "PlacedModule": "placing.torch_modules",
    "RationalArray": "problem.rational",
    "Result": "solution.result",
    "Schedule": "solution.schedule",
    "Status": "solution.result",
    "Strategy": "applications.training.strategy",
    "Termination": "solution.termination",
    "TrainingCluster": "applications.training.cluster",
    "TrainingGraph": "applications.training.graph",
    "Transfers": "solution.schedule",
    "UnsupportedError": "base.errors",
    "Violation": "solution.verifier",
    "Work": "problem.workload",
    "Workload": "problem.workload",
    "attainable": "applications.ordering.efficiency",
    "apart": "api",
    "bounds": "api",
    "certify": "api",
    "certify_bound": "api",
    "check": "api",
    "compare": "api",
    "compare_orders": "api",
    "compare_strategies": "training_api",
    "compile_strategy": "applications.training.compiler",
    "conclude": "solution.result",
    "costed": "api",
    "divide": "api",
    "draw": "api",
    "draw_strategy": "training_api",
    "export": "api",
    "export_strategy": "training_api",
    "from_pyjobshop": "interop.formats.pyjobshop",
    "live": "study.report.progress",
    "load": "api",
    "load_set": "study.dataset",
    "makespan_bounds": "applications.ordering.efficiency",
    "pareto": "api",
    "pipeline_problem": "api",
    "place": "placing.place",
    "plan": "api",
    "plot_comparisons": "study.report.plots",
    "read_instance": "interop.formats.detect",
    "register": "methods.registry",
    "retime": "solution.schedule",
    "recommend": "api",
    "recompute": "api",
    "result_from_pyjobshop": "api",
    "robust": "api",
    "save": "api",
    "sensitivity": "api",
    "serve": "api",
    "simulate": "api",
    "solve": "api",
    "solve_strategy": "training_api",
    "strategy_bound": "training_api",
    "strategy_question": "training_api",
    "supporting": "methods.registry",
    "sweep": "api",
    "to_pyjobshop": "interop.formats.pyjobshop",
    "verify": "api",
    "verify_strategy": "training_api",
    "workload": "api",
    "worst": "study.worst.search",
    "write_lesson": "api",
    "write_report": "api",
}

shown_by(lambda: import_module("optpart.study.report.notebook"))

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        found = getattr(import_module(f"optpart.{_HOME[name]}"), name)
        return checked(found) if isfunction(found) else found
    # Name and module let Python suggest a close name.
    message = f"module 'optpart' has no attribute {name!r}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted(__all__)
