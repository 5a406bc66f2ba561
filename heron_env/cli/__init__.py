"""The command `heron`; also `python -m heron_env`. What a command needs is imported when it runs."""

from heron_env.cli import compare, dcop, environments, episodes, policies, serve, sweep, validate, watching
from heron_env.cli.application import app, parsed_options

app.command("demo")(policies.demo)
app.command("envs")(environments.envs)
app.command("describe")(environments.describe)
app.command("validate")(validate.validate)
app.command("check")(environments.check)
app.command("train")(policies.train)
app.command("eval")(sweep.evaluate)
app.command("export")(policies.export)
app.command("sweep")(sweep.sweep)
app.command("compare")(compare.compare)
app.command("run")(episodes.run)
app.command("watch")(watching.watch)
app.command("report")(sweep.report)
app.command("trace")(episodes.trace)
app.command("replay")(episodes.replay)
app.command("serve")(serve.serve)
app.add_typer(dcop.dcop, name="dcop")

__all__ = ["app", "parsed_options"]
