"""What depends on where the project is published: how to install it, links to the repository and to Colab."""

from __future__ import annotations

from typing import Any

from docutils import nodes

FROM_CLONE = """\
```sh
git clone <address of this repository> heron_env && cd heron_env
pip install --constraint constraints.txt '.[train,plots]'
```"""
FROM_INDEX = """\
```sh
pip install 'heron_env[train,plots]'
```"""
BRANCH = "main"


def install(repository: str, published: bool) -> str:
    """The block of README.md and of the page Installation."""
    return (
        FROM_INDEX
        if published
        else FROM_CLONE.replace("<address of this repository>", repository or "<address of this repository>")
    )


def colab_address(repository: str, notebook: str) -> str:
    """Of one notebook, by its stem, such as 05_split_the_loss."""
    place = repository.removeprefix("https://github.com/")
    return f"https://colab.research.google.com/github/{place}/blob/{BRANCH}/notebooks/{notebook}.ipynb"


def colab(name: str, rawtext: str, text: str, *rest: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """A role: the link to Colab, and nothing as long as there is no address."""
    repository = rest[1].document.settings.env.config.repository
    if not repository:
        return [], []
    return [nodes.reference(rawtext, "Open in Colab", refuri=colab_address(repository, text))], []


def configure(app: Any, config: Any) -> None:
    """Of Sphinx, once settings are read."""
    config.myst_substitutions = {"install": install(config.repository, config.published)}
    if config.repository:
        edit = {"source_repository": config.repository, "source_branch": BRANCH, "source_directory": "docs/"}
        config.html_theme_options = config.html_theme_options | edit


def edit_notebooks(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Notebooks are edited where they are, beside docs/."""
    if pagename.startswith("notebooks/"):
        context["theme_source_directory"] = ""


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx asks of an extension."""
    app.add_config_value("repository", "", "env", types=[str])
    app.add_config_value("published", False, "env", types=[bool])
    app.add_role("colab", colab)
    app.connect("config-inited", configure, priority=400)
    app.connect("html-page-context", edit_notebooks)
    return {"parallel_read_safe": True}
