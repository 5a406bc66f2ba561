"""Sphinx: pages in MyST Markdown and notebooks as they were last run. Nothing here asks the network."""

from heron_env import __version__

project = "heron_env"
author = "heron_env contributors"
release = version = __version__

extensions = ["myst_nb"]
exclude_patterns = ["_build"]
nb_execution_mode = "off"  # notebooks/ is executed by notebooks/build.py, which CI checks
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"heron_env {version}"
html_show_sourcelink = False
nitpicky = True
