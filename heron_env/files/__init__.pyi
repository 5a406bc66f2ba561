from heron_env.files.writing import write as write
from heron_env.files.writing import write_all as write_all
