"""Run a model that was cut into parts: python run.py INPUTS.npz OUTPUTS.npz.

This file needs nothing but numpy and onnxruntime, and plan.json and the parts beside it.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime


class Parts:
    """The parts of a model, loaded.

    Parameters
    ----------
    folder : str or Path
        With plan.json and the parts.
    options : onnxruntime.SessionOptions, optional
        For every part.
    """

    def __init__(self, folder: str | Path, options: Any = None) -> None:
        plan = json.loads((Path(folder) / "plan.json").read_text(encoding="utf-8"))
        self.inputs: list[str] = plan["inputs"]
        self.outputs: list[str] = plan["outputs"]
        self.parts: list[dict[str, Any]] = plan["parts"]
        self.sessions = [self._load(Path(folder), part, options) for part in self.parts]

    def _load(self, folder: Path, part: dict[str, Any], options: Any) -> Any:
        provider, settings = part["provider"]
        if provider not in onnxruntime.get_available_providers():
            raise ValueError(f"{part['file']}: this onnxruntime has no {provider}")
        file = str(folder / part["file"])
        return onnxruntime.InferenceSession(file, options, providers=[(provider, settings)])

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs of the model by name; the parts run one after the other."""
        if inputs.keys() != set(self.inputs):
            raise ValueError(f"the inputs are {sorted(self.inputs)}, not {sorted(inputs)}")
        last = {name: i for i, part in enumerate(self.parts) for name in part["inputs"]}
        values = dict(inputs)
        for i, (part, session) in enumerate(zip(self.parts, self.sessions, strict=True)):
            feeds = {name: values[name] for name in part["inputs"]}
            values.update(zip(part["outputs"], session.run(part["outputs"], feeds), strict=True))
            for name in part["inputs"]:
                if last[name] == i and name not in self.outputs:
                    del values[name]
        return {name: values[name] for name in self.outputs}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python run.py INPUTS.npz OUTPUTS.npz")
    with np.load(sys.argv[1]) as given:
        computed = Parts(Path(__file__).parent).run({name: given[name] for name in given.files})
    np.savez(sys.argv[2], **computed)
