"""Run an exported policy with onnxruntime and numpy alone: python onnx_runner.py FILE.onnx < observations.csv

Where the policy corrects a rule, each line ends with that rule's action.
"""
# needs: onnxruntime numpy

import json
import sys

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1])
about = json.loads(session.get_modelmeta().custom_metadata_map["heron_env"])
shapes = {put.name: put.shape for put in session.get_inputs()}
memory = {name: np.zeros(shapes[name], np.float32) for name in ("hidden",) if name in shapes}
of_rule = shapes["anchor"][1] if "anchor" in shapes else 0
print("#", *(f"{column['name']} [{column['unit']}]" for column in about["observation"]), sep=", ")
for number, line in enumerate(sys.stdin):
    row = np.array([line.split(",")], float)
    inputs = {"observation": row[:, : row.shape[1] - of_rule].astype(np.float32), **memory}
    inputs |= {"anchor": row[:, row.shape[1] - of_rule :]} if of_rule else {}
    inputs |= {"first": np.array([number == 0])} if memory else {}
    inputs |= {"mask": np.ones(shapes["mask"], bool)} if "mask" in shapes else {}  # True: this may be chosen
    action, *after = session.run(["action", *(f"next_{name}" for name in memory)], inputs)
    memory = dict(zip(memory, after, strict=True))
    print(*action[0], sep=",")
