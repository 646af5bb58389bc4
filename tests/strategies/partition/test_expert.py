"""Expert placement: by rules on names, or one layer a device ([B] §5.2.2)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model
from optpart.strategies.base import NoPlacementError
from optpart.strategies.partition.expert import expert, layers

RNG = np.random.default_rng(0)


def instance(*names: str, edges: tuple[str, ...] = (), cluster: Cluster | None = None) -> Instance:
    """Vertices of memory 1; an edge is written ``a>b``. Devices are cpu, gpu0 and gpu1."""
    builder = GraphBuilder()
    for name in names:
        builder.vertex(name, 1, memory=1)
    for edge in edges:
        builder.edge(*edge.split(">"), None)
    devices = [Device("cpu", 1), Device("gpu0", 8), Device("gpu1", 9)]
    return Instance(builder.build(), cluster or Cluster.of(devices), Model(memory="estimate"))


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return tmp_path / "rules.csv"


def placed(instance: Instance, rules: Path, *lines: str) -> list[str]:
    rules.write_text("\n".join(["pattern,device", *lines]))
    found = expert(instance, RNG, rules=rules).placement
    return [instance.cluster.names[d] for d in found]


class TestRules:
    def test_the_first_pattern_that_matches_decides(self, rules: Path) -> None:
        names = ("layer_0/a", "layer_1/a", "layer_1/b", "loss")
        lines = ("layer_0/*,gpu0", "*/b,cpu", "layer_?/*,gpu1", "*,cpu")
        assert placed(instance(*names), rules, *lines) == ["gpu0", "gpu1", "cpu", "cpu"]

    def test_a_pattern_has_to_match_the_whole_name(self, rules: Path) -> None:
        assert placed(instance("ab", "b"), rules, "b,gpu1", "*,cpu") == ["cpu", "gpu1"]

    def test_case_counts_and_ranges_are_ranges(self, rules: Path) -> None:
        names = ("Conv1", "conv1", "conv7")
        assert placed(instance(*names), rules, "conv[0-5],gpu0", "*,cpu") == ["cpu", "gpu0", "cpu"]

    def test_a_name_with_a_comma_is_quoted(self, rules: Path) -> None:
        assert placed(instance("a,b"), rules, '"a,*",gpu1') == ["gpu1"]

    def test_a_group_follows_the_first_rule_that_matches_any_member(self, rules: Path) -> None:
        builder = GraphBuilder().vertex("a").vertex("b").vertex("c").colocate("a", "b")
        two = Instance(builder.build(), Cluster.uniform(2))
        assert placed(two, rules, "b,d1", "a,d0", "c,d0") == ["d1", "d1", "d0"]

    def test_what_no_rule_matches_follows_most_of_its_inputs(self, rules: Path) -> None:
        names, edges = ("a1", "a2", "b1", "x", "y"), ("a1>x", "b1>x", "a2>x", "x>y")
        found = placed(instance(*names, edges=edges), rules, "a*,gpu1", "b*,gpu0")
        assert found == ["gpu1", "gpu1", "gpu0", "gpu1", "gpu1"]

    def test_and_without_inputs_goes_to_the_first_device(self, rules: Path) -> None:
        assert placed(instance("a", "x"), rules, "a,gpu1") == ["gpu1", "cpu"]
        assert placed(instance("a"), rules) == ["cpu"]

    def test_what_does_not_fit_goes_to_the_next_device(self, rules: Path) -> None:
        small = Cluster.of([Device("cpu"), Device("gpu0", memory=1), Device("gpu1", memory=1)])
        found = placed(instance("a", "b", "c", cluster=small), rules, "*,gpu0")
        assert found == ["gpu0", "gpu1", "cpu"]

    def test_no_device_left_is_an_error_that_names_the_unit(self, rules: Path) -> None:
        small = Cluster.uniform(1, memory=1)
        with pytest.raises(NoPlacementError, match="no device was left for b"):
            placed(instance("a", "b", cluster=small), rules, "*,d0")


class TestFaults:
    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("", "line 1: the header is ''; write pattern,device"),
            ("device,pattern\n", "line 1: the header is 'device,pattern'"),
            ("pattern,device\na,cpu\n\nb,tpu\n", "line 4, device: no device 'tpu'; name a device"),
            ("pattern,device\na\n", "line 2: 1 fields; give 2"),
            ('pattern,device\n"a,cpu\n', "line 2: is not CSV"),
        ],
    )
    def test_name_file_and_line(self, rules: Path, text: str, fault: str) -> None:
        rules.write_text(text)
        with pytest.raises(InputError) as caught:
            expert(instance("a"), RNG, rules=rules)
        assert str(caught.value).startswith(f"{rules}: {fault}")

    def test_a_missing_file_is_one(self, rules: Path) -> None:
        with pytest.raises(InputError, match=r"rules\.csv: cannot be read"):
            expert(instance("a"), RNG, rules=rules)

    @given(st.binary(max_size=40))
    def test_whatever_the_bytes(
        self, tmp_path_factory: pytest.TempPathFactory, tail: bytes
    ) -> None:
        path = tmp_path_factory.getbasetemp() / "any.csv"
        path.write_bytes(b"pattern,device\n" + tail)
        with suppress(InputError):
            expert(instance("a"), RNG, rules=path)

    @given(st.text(alphabet="a*?[]!-^\\.($", max_size=12))
    def test_any_pattern_is_one(self, tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
        path = tmp_path_factory.getbasetemp() / "pattern.csv"
        path.write_text(f"pattern,device\n{text},cpu\n")
        expert(instance("a"), RNG, rules=path)


class TestLayers:
    def test_layer_n_goes_to_device_n_the_fastest_first(self) -> None:
        names = ("layer_0/x", "encoder/layer_1/step_3/y", "gradients/layer_2/z", "layer_3")
        found = expert(instance(*names), RNG).placement
        assert found.tolist() == [2, 1, 0, 2]

    def test_layers_are_whole_parts_of_names(self) -> None:
        names = ("layer_x/a", "my_layer_1/a", "layer_1a", "layer_10/a", "a/layer_2")
        assert layers(instance(*names)).tolist() == [-1, -1, -1, 10 % 3, 2]

    def test_a_group_follows_its_lowest_layer(self) -> None:
        builder = GraphBuilder().vertex("layer_1/a").vertex("layer_0/a").vertex("b")
        graph = builder.colocate("layer_1/a", "layer_0/a", "b").build()
        assert layers(Instance(graph, Cluster.uniform(2))).tolist() == [0]

    def test_what_has_no_layer_follows_its_inputs(self) -> None:
        names = ("in", "layer_1/a", "out")
        one = instance(*names, edges=("in>layer_1/a", "layer_1/a>out"))
        assert expert(one, RNG).placement.tolist() == [2, 1, 1]

    def test_a_graph_without_layers_is_on_the_fastest_device(self) -> None:
        assert expert(instance("a", "b"), RNG).placement.tolist() == [2, 2]
