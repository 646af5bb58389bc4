"""The dynamic programmes against every contiguous placement of small instances."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from optpart.errors import UnsupportedError
from optpart.pipeline.path import is_chain
from optpart.pipeline.solve import Found, best_contiguous
from optpart.problem.instance import Instance
from optpart.problem.model import Communication
from optpart.testing.draw import draw_instance
from tests.naive_pipelines import loads, orderable, ordered, placements, convex
