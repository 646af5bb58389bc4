"""Plans for language models, written by hand."""

from fractions import Fraction

from optpart.exporters.plan import Plan


def plan(devices: str, *, embedding="", norm="", head="", halves=False) -> Plan:
    """A device per block, or ``attention/mlp``, or ``attention/mlp/experts``.

    The ends go with the first and the last block.
    """
    blocks = [each.split("/") for each in devices.split()]
    placed = {"embedding": embedding or blocks[0][0]}
    for number, block in enumerate(blocks):
        if len(block) == 1 and not halves:
            placed[f"block.{number}"] = block[0]
            continue
        placed[f"block.{number}.attention"] = block[0]
        placed[f"block.{number}.mlp"] = block[1] if len(block) > 1 else block[0]
        if len(block) == 3:
            placed[f"block.{number}.experts"] = block[2]
    placed["norm"] = norm or blocks[-1][-1]
    placed["head"] = head or blocks[-1][-1]
    return by_hand(placed)


def by_hand(placed: dict[str, str]) -> Plan:
    """A plan that runs vertices one after another."""
    return Plan("toy", "by hand", placed, {name: Fraction(k) for k, name in enumerate(placed)})
