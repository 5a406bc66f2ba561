"""Sphinx: pages in MyST Markdown, the API from docstrings. Nothing here asks the network."""

import importlib.util
import shutil
import sys
from pathlib import Path

from heron_env import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import moved  # noqa: E402

# Two settings. `repository` is the address, such as https://github.com/OWNER/heron_env: with it, pages get "edit
# this page", and notebooks "open in Colab". `published`: heron_env is on PyPI. README.md has the block of the
# installation, too; a test compares them.
repository = ""
published = False

project = "heron_env"
author = "heron_env contributors"
copyright = f"2026, {author}, MIT licence"
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton", "sphinx_design"]
extensions += ["sphinx_reredirects"]
extensions += ["command_line", "glossary_links", "house_docstrings", "law_links", "publishing", "reference"]
extensions += ["search_words"]
redirects = moved.forwarding()
exclude_patterns = ["_build", "_ext", "jupyter_execute"]  # the last is written by myst_nb
shutil.rmtree(HERE / "notebooks", ignore_errors=True)
shutil.copytree(
    HERE.parent / "notebooks", HERE / "notebooks", ignore=shutil.ignore_patterns("*.py", ".*"), dirs_exist_ok=True
)
nb_execution_mode = "off"  # notebooks/ is executed by notebooks/build.py, which CI checks
nb_ipywidgets_js = {}  # pages load nothing from elsewhere
myst_enable_extensions = ["colon_fence", "deflist", "substitution"]
myst_heading_anchors = 3

# Adapters of libraries that are not installed are documented all the same (docs/_ext/reference.py imports them, too).
adapted = ("benchmarl", "jax", "minari", "ray", "tensordict", "torchrl")
autodoc_mock_imports = [name for name in adapted if importlib.util.find_spec(name) is None]
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # the text of a default that Python shows as <built-in ...> parses
autodoc_typehints = "signature"
maximum_signature_line_length = 90
add_module_names = False
python_use_unqualified_type_names = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"heron_env {version}"
html_favicon = "_static/favicon.svg"
html_search_scorer = str(HERE / "_ext" / "scorer.js")  # Sphinx opens it from the working directory
html_static_path = ["_static", "pictures/front.png"]
html_css_files = ["figures.css"]
html_js_files = ["search.js"]
html_show_sourcelink = False
nitpicky = True
# Types in signatures: those of other libraries, and of modules further in, have no page here.
nitpick_ignore_regex = [("py:.*", ".*")]
