"""Worst cases of methods, against proven optima."""

from optpart.study.worst.families import FAMILIES
from optpart.study.worst.search import Worst, worst

__all__ = ["FAMILIES", "Worst", "worst"]
