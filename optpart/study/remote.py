"""A run on another machine: text in, text out."""

from __future__ import annotations

import json
from functools import lru_cache

from optpart.formats import native
from optpart.formats import result as result_format
from optpart.formats.json import parse_json
from optpart.problem.instance import Instance
from optpart.solution.result import Budget
from optpart.study.run import Run, execute


def execute_text(instance: str, method: str, seed: int, budget: Budget) -> str:
    """Execute a run on an instance in native JSON, and return its result document."""
    result = execute(Run(_parsed(instance), method, seed, budget))
    return json.dumps(result_format.to_dict(result))


@lru_cache(maxsize=2)
def _parsed(instance: str) -> Instance:
    return native.from_dict(parse_json(instance))
