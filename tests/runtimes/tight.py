"""Two unlike devices, neither of which holds a whole model."""

from optpart.interop.costs.registry import Options, apply
from optpart.interop.formats.cluster_toml import loads_named


def on_two(workload, tensors):
    """Return the instance, with room for so many of the largest tensors beside the weights."""
    held = [int(each) for each in workload.graph.memory.fractions()]
    sizes = [int(each) for each in workload.graph.tensor_size.fractions()]
    limit = max(2 * sum(held) // 3, max(held)) + tensors * max(sizes)
    cluster = loads_named(
        'default_link = "pcie-4-x16"\n'
        + "".join(
            f'[[device]]\nof = "{of}"\nname = "{name}"\nmemory = {limit}\n'
            for name, of in (("near", "rtx-3090"), ("far", "ryzen-9-7950x"))
        )
    )
    return apply("roofline", workload, cluster, Options()).instance
