"""Sphinx: pages in MyST Markdown, the API from docstrings. Nothing here asks the network."""

import sys
from pathlib import Path

from heron_env import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "heron_env"
author = "heron_env contributors"
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "house_docstrings", "law_links"]
exclude_patterns = ["_build"]
nb_execution_mode = "off"  # notebooks/ is executed by notebooks/build.py, which CI checks
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
maximum_signature_line_length = 90
add_module_names = False
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"heron_env {version}"
html_static_path = ["_static"]
html_css_files = ["figures.css"]
html_show_sourcelink = False
nitpicky = True
# Types in signatures: those of other libraries, and of modules further in, have no page here.
nitpick_ignore_regex = [("py:.*", ".*")]
