from heron_env.real.carried import carrying as carrying
from heron_env.real.carried import run_carried as run_carried
from heron_env.real.hub import Hub as Hub
from heron_env.real.hub import RealRun as RealRun
from heron_env.real.node import run_node as run_node
from heron_env.real.secret import new_secret as new_secret
from heron_env.real.what_if import WhatIf as WhatIf
