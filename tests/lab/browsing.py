"""A page in a headless browser, and what a script of the test found there."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any


def checked_in_a_browser(chromium: list[str], text: str, script: str, folder: Path, width: int) -> dict[str, Any]:
    """What the script put into the title after "checked: "; the page complains of nothing."""
    page = folder / "page.html"
    page.write_text(text.replace("</body>", f"{script}</body>"), encoding="utf-8")
    flags = ["--enable-logging=stderr", "--v=0", f"--window-size={width},900", "--dump-dom", page.as_uri()]
    done = subprocess.run([*chromium, *flags], capture_output=True, text=True, timeout=60, check=True)
    assert not re.findall(r"CONSOLE.*", done.stderr)
    found: dict[str, Any] = json.loads(re.search(r"<title>checked: (.*?)</title>", done.stdout)[1])
    return found
