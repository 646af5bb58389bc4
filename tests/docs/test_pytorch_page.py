"""The function on the page on PyTorch writes an instance; PyTorch's own nodes are stood in for."""

from __future__ import annotations

import operator
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from optpart.interop.formats import native

PAGE = (Path(__file__).parents[2] / "docs" / "use" / "pytorch.md").read_text(encoding="utf-8")
EXPORT, WRITE, CALL = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


class Tensor:
    def __init__(self, count: int) -> None:
        self.count = count

    def numel(self) -> int:
        return self.count

    def element_size(self) -> int:
        return 4


def node(name: str, op: str, value: Any, *inputs: Any, target: Any = None) -> Any:
    arguments = tuple(inputs)
    nodes = [each for each in inputs if isinstance(each, SimpleNamespace)]
    return SimpleNamespace(
        name=name, op=op, target=target, args=arguments, all_input_nodes=nodes, meta={"val": value}
    )


def test_the_function_writes_an_instance(tmp_path: Path) -> None:
    x = node("x", "placeholder", Tensor(6))
    weight = node("p_w", "placeholder", Tensor(9))
    product = node("mm", "call_function", Tensor(6), x, weight)
    halves = node("split", "call_function", (Tensor(3), Tensor(3)), product)
    second = node("getitem", "call_function", Tensor(3), halves, 1, target=operator.getitem)
    last = node("relu", "call_function", Tensor(3), second)
    graph = SimpleNamespace(nodes=[x, weight, product, halves, second, last])
    program = SimpleNamespace(
        graph=graph,
        graph_signature=SimpleNamespace(inputs_to_parameters={"p_w": "w"}, inputs_to_buffers={}),
    )
    names: dict[str, Any] = {"program": program}
    exec(WRITE, names)
    path = tmp_path / "model.json"
    exec(CALL.replace('"model.json"', "path"), names | {"path": path})
    found = native.read(path).graph
    assert found.names == ("mm", "split", "relu")
    assert [*map(int, found.ops)] == [6, 6, 3]
    assert [*map(int, found.memory)] == [36, 0, 0]
    assert [*map(int, found.tensor_size)] == [24, 12, 12, 12]
    assert [*found.edge_tensor] == [0, 2]


def test_the_export_is_python() -> None:
    compile(EXPORT, "page", "exec")
