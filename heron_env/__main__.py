"""`python -m heron_env` is the command `heron`."""

from heron_env.cli import app

if __name__ == "__main__":
    app(prog_name="heron")
