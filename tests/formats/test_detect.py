import pytest

from optpart.cluster import Cluster
from optpart.errors import InputError
from optpart.formats import native
from optpart.formats.detect import read_instance
from optpart.graph import GraphBuilder
from optpart.instance import Instance


def test_native_files_are_read(tmp_path):
    graph = GraphBuilder().vertex("a", 1).build()
    native.write(Instance(graph, Cluster.uniform(1), name="one"), tmp_path / "one.JSON")
    assert read_instance(tmp_path / "one.JSON").name == "one"


def test_gxl_files_are_read(tmp_path):
    path = tmp_path / "none.gxl"
    path.write_text(
        '<gxl><graph id="g"><attr name="Number of processors"><int>3</int></attr></graph></gxl>'
    )
    assert read_instance(str(path)).devices == 3


@pytest.mark.parametrize("name", ["net.pb", "net.PBTXT", "graph.csv", "cluster.toml", "a.txt", "a"])
def test_other_files_need_an_import(tmp_path, name):
    with pytest.raises(InputError, match="optpart import") as error:
        read_instance(tmp_path / name)
    assert error.value.file == str(tmp_path / name)
