"""A small file of ONNX."""

from pathlib import Path
from typing import Any

import numpy as np


def linear(
    path: Path, weights: Any, dtype: Any = np.float32, *, inputs: int = 1, outputs: int = 1, actions: int = 0
) -> str:  # fmt: skip
    """A file of ONNX: observation `[1, d]` @ weights `[d, k]`; of so many `actions`, `[1, actions, ...]`."""
    import onnx
    from onnx import helper, numpy_helper

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    seen = [helper.make_tensor_value_info(f"x{n}", kind, [1, len(weights)]) for n in range(inputs)]
    shape = [1, actions, weights.shape[1] // actions] if actions else [1, weights.shape[1]]
    made = [helper.make_tensor_value_info(f"y{n}", kind, shape) for n in range(outputs)]
    nodes = [helper.make_node("MatMul", ["x0", "w"], [f"{'f' if actions else 'y'}{n}"]) for n in range(outputs)]
    nodes += [helper.make_node("Reshape", [f"f{n}", "s"], [f"y{n}"]) for n in range(outputs) if actions]
    fixed = [(weights.astype(dtype), "w"), (np.array(shape, np.int64), "s")]
    graph = helper.make_graph(nodes, "linear", seen, made, [numpy_helper.from_array(*each) for each in fixed])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return str(path)
