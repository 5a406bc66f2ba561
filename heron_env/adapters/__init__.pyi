from heron_env.adapters.benchmarl import HeronTask as HeronTask
from heron_env.adapters.datasets import AgentEpisode as AgentEpisode
from heron_env.adapters.datasets import record_decisions as record_decisions
from heron_env.adapters.datasets import write_minari as write_minari
from heron_env.adapters.gymnasium import HeronVectorEnv as HeronVectorEnv
from heron_env.adapters.network.faces import under_network as under_network
from heron_env.adapters.sb3 import HeronVecEnv as HeronVecEnv
from heron_env.adapters.torchrl import HeronTorchEnv as HeronTorchEnv
