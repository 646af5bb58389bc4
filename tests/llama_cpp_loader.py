"""Where llama.cpp has the parts of a model: ``load_tensors`` and its relatives, restated."""

import re
import shlex

import numpy as np


class Loader:
    """What llama.cpp makes of its options.

    Attributes
    ----------
    servers : list of str
    devices : list of str
        Names of devices.
    homes : list of str
        Buffers of blocks, where their keys and values are, and of the output layer.
    """

    def __init__(self, options: str, blocks: int) -> None:
        given = shlex.split(options)
        self._given = dict(zip(given[::2], given[1::2], strict=True))
        self.servers = self._listed("--rpc")
        self.devices = [name for name in self._listed("--device") if name != "none"]
        # Every server has one device here.
        self._buffers = {f"RPC{k}": f"RPC0[{server}]" for k, server in enumerate(self.servers)}
        self.homes = self._homes(blocks)

    def place(self, tensor: str) -> str:
        """Return the buffer of a tensor: of the first pattern that is found in its name."""
        for override in self._listed("--override-tensor"):
            pattern, _, name = override.partition("=")
            if re.search(pattern, tensor):
                return name
        number = re.match(r"blk\.(\d+)\.", tensor)
        if number:
            return self.homes[int(number[1])]
        return self.homes[-1] if tensor.startswith("output") else "CPU"

    def _listed(self, option: str) -> list[str]:
        return self._given[option].split(",") if option in self._given else []

    def _homes(self, blocks: int) -> list[str]:
        on_gpu = int(self._given["--n-gpu-layers"])
        start, active = max(blocks + 1 - on_gpu, 0), min(on_gpu, blocks + 1)
        bounds, total = [], np.float32(0)
        for share in self._listed("--tensor-split"):
            total += np.float32(share)
            bounds.append(total)
        bounds = [bound / total for bound in bounds]
        found = []
        for layer in range(blocks + 1):
            if layer < start or layer - start >= (active if self.devices else 0):
                found.append("CPU")
                continue
            share = np.float32(layer - start) / np.float32(active)
            name = self.devices[int(np.searchsorted(bounds, share, side="right"))]
            found.append(self._buffers.get(name, name))
        return found
