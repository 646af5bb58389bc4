"""Plans for run times that vary."""

from optpart.study.robust.search import Robust, robust
from optpart.study.robust.variation import Variation, variation

__all__ = ["Robust", "Variation", "robust", "variation"]
