# heron_env with training, reports, the HTTP service and real networks, on CPUs. docs/installation.md lists the commands.
FROM python:3.12-slim AS base
# The CPU build of torch: the wheel on PyPI brings CUDA libraries.
ENV PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu PYTHONUNBUFFERED=1
RUN useradd --create-home --uid 1000 heron

# The dev container: git and make, and no heron_env yet (`make setup` installs the clone).
FROM base AS dev
RUN apt-get update && apt-get install --yes --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
USER heron

# The image of `docker build`. torch is a layer of its own: a change of the code does not download it again.
FROM base AS run
WORKDIR /home/heron
COPY constraints.txt build/
RUN pip install --no-cache-dir --constraint build/constraints.txt torch
COPY pyproject.toml README.md LICENSE build/
COPY heron_env build/heron_env
RUN pip install --no-cache-dir --constraint build/constraints.txt './build[train,plots,agents,mqtt]' && rm -r build
# Compiled rules and results, in folders that the user may write.
ENV HERON_CACHE_DIR=/home/heron/.cache/heron_env
RUN install --directory --owner heron --mode 700 .cache .cache/heron_env runs
USER heron
EXPOSE 8000
CMD ["heron", "--help"]
