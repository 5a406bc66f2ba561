"""Run an exported policy with onnxruntime and numpy alone: python onnx_runner.py FILE.onnx < observations.csv"""
# needs: onnxruntime numpy

import json
import sys

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1])
about = json.loads(session.get_modelmeta().custom_metadata_map["heron_env"])
shapes = {put.name: put.shape for put in session.get_inputs()}
memory = {name: np.zeros(shapes[name], np.float32) for name in ("hidden",) if name in shapes}
print("#", *(f"{column['name']} [{column['unit']}]" for column in about["observation"]), sep=", ")
for number, line in enumerate(sys.stdin):
    given = {"observation": np.array([line.split(",")], np.float32), **memory}
    given |= {"first": np.array([number == 0])} if memory else {}
    given |= {"mask": np.ones(shapes["mask"], bool)} if "mask" in shapes else {}  # True: this may be chosen
    action, *kept = session.run(["action", *(f"next_{name}" for name in memory)], given)
    memory = dict(zip(memory, kept, strict=True))
    print(*action[0], sep=",")
