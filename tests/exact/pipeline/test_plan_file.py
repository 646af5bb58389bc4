"""Plans as files: what is written is read again, and false claims are found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from optpart.base.errors import InputError
from optpart.exact.pipeline.plan import plan_pipeline
from optpart.exact.pipeline.plan_file import check_plan, dumps_plan, write_plan
from optpart.exact.pipeline.problem import Pipeline, pipeline_of
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance


@pytest.fixture
def pipeline() -> Pipeline:
    graph = GraphBuilder().vertex("a", "1/3", memory=2).vertex("b", 2).edge("a", "b", None).build()
    return pipeline_of(Instance(graph, Cluster.uniform(2), name="pair"))


def test_a_plan_passes_its_own_check(pipeline: Pipeline, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(plan_pipeline(pipeline, replicas=2), path)
    assert check_plan(pipeline, path) == []
    document = json.loads(path.read_text())
    assert document["bottleneck"] == document["lower_bound"] == "7/6"
    assert document["stages"][0]["devices"] == ["d0", "d1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sha256": "0"}, "sha256: the plan was made for another problem"),
        ({"bottleneck": "1"}, "bottleneck is 2, not 1"),
        ({"lower_bound": "3"}, "lower_bound 3 is above the bottleneck 2"),
        ({"lower_bound": "1"}, "status is OPTIMAL, but bottleneck and lower_bound differ"),
        ({"replicas": 1, "stages": [{"devices": ["d0", "d1"], "vertices": ["a", "b"]}]},
         "stage 0 has 2 replicas, of which 1 are allowed"),
        ({"stages": [{"devices": ["d0"], "vertices": ["a"], "load": "1"},
                     {"devices": ["d1"], "vertices": ["b"], "load": "2"}]},
         "stages[0].load is 1/3, not 1"),
    ],
)  # fmt: skip
def test_false_claims_are_found(
    pipeline: Pipeline, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    document = json.loads(dumps_plan(plan_pipeline(pipeline))) | change
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    assert said in check_plan(pipeline, path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"more": 1}, "unknown key 'more'"),
        ({"format": "optpart-result/1"}, 'this version reads "optpart-pipeline/1"'),
        ({"replicas": 0}, "replicas: cannot be 0; give a whole number ≥ 1"),
        ({"stages": None}, "stages: is null; give a list"),
        ({"stages": [{"devices": ["d9"], "vertices": []}]}, "stages[0].devices: no 'd9'"),
    ],
)
def test_faults_are_one_line(
    pipeline: Pipeline, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    document = json.loads(dumps_plan(plan_pipeline(pipeline))) | change
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as error:
        check_plan(pipeline, path)
    assert said in str(error.value)
    assert str(path) in str(error.value)
