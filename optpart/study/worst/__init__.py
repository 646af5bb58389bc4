"""Worst cases of methods, against proven optima."""

from optpart.study.worst.families import FAMILIES
from optpart.study.worst.search import WORST_SECONDS, Worst, worst_case

__all__ = ["FAMILIES", "WORST_SECONDS", "Worst", "worst_case"]
