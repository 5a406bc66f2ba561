"""Films as files: moving pictures, and a page that plays them and loads nothing."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from html import escape
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.files.writing import write
from heron_env.given import is_number
from heron_env.pictures.panels import LEGEND

if TYPE_CHECKING:
    from heron_env.pictures.film import Film

SAMPLES: Final = 8
"""Frames whose colours make the palette of a .gif."""
HEIGHT: Final = 720
"""Pixels of the player in a notebook."""


def require_film(path: Path, fps: float) -> Path:
    """The path. Raises ConfigError for an ending but .gif, .mp4 and .html, where nothing writes mp4, or for fps."""
    most = 50.0 if path.suffix.lower() == ".gif" else 60.0
    if not (is_number(fps) and 0.0 < fps <= most):
        raise ConfigError(f"save(fps={fps!r}): must be a number of frames a second, above 0 and up to {most:g}")
    if path.suffix.lower() not in WRITERS:
        raise ConfigError(f"{str(path)!r}: the name of a film must end with .gif, .mp4 or .html")
    if path.suffix.lower() == ".mp4":
        _ffmpeg()
    return path


def write_film(film: Film, path: Path, fps: float) -> Path:
    """See Film.save."""
    path = require_film(path, fps)
    path.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[path.suffix.lower()](film, path, fps)
    return path


def _write_gif(film: Film, path: Path, fps: float) -> None:
    from PIL import Image

    images = [Image.fromarray(image) for image in film.images()]
    some = np.concatenate([np.asarray(image)[::2, ::2] for image in images[:: -(-len(images) // SAMPLES)]])
    palette = Image.fromarray(some).quantize(192, Image.Quantize.MAXCOVERAGE, kmeans=3)
    legend = ((int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in LEGEND)  # the same in each film
    palette.putpalette([*chain(*legend), *(palette.getpalette() or [])[: 3 * 192]])
    first, *rest = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images)
    content = io.BytesIO()
    first.save(content, "GIF", save_all=True, append_images=rest, duration=round(1000 / fps), loop=0, disposal=1)
    write(path, content.getvalue())


def _write_mp4(film: Film, path: Path, fps: float) -> None:
    writer = None
    for image in film.images():
        if writer is None:
            size = image.shape[1], image.shape[0]
            writer = _ffmpeg().write_frames(str(path), size, fps=fps, codec="libx264", quality=7)
            writer.send(None)
        writer.send(np.ascontiguousarray(image))
    assert writer is not None, "a film has a frame"
    writer.close()


def _ffmpeg() -> Any:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise ConfigError("films as .mp4 need imageio-ffmpeg: pip install 'heron_env[video]'") from error
    return imageio_ffmpeg


def _write_page(film: Film, path: Path, fps: float) -> None:
    write(path, page(film, fps))


WRITERS: Final[dict[str, Callable[[Film, Path, float], None]]] = {
    ".gif": _write_gif, ".mp4": _write_mp4, ".html": _write_page,
}  # fmt: skip


def page(film: Film, fps: float = 12.0) -> str:
    """The player as one document: the first frame, and of each frame the pixels that differ from it."""
    images, first, frames = dict[str, int](), list[NDArray[np.uint8]](), []
    for time, clock, *pictures in film:
        first = first or pictures
        changes = [_address(picture, ground) for picture, ground in zip(pictures, first, strict=True)]
        places = [images.setdefault(change, len(images)) for change in changes]
        frames.append([f"{time:.10g} s  {clock}".strip(), *places])
    grounds = [_address(ground) for ground in first]
    data = {"frames": frames, "images": list(images), "grounds": grounds, "fps": fps, "agent": film.agent}
    document = files("heron_env.pictures").joinpath("player.html").read_text(encoding="utf-8")
    text = json.dumps(data).replace("<", "\\u003c")
    return document.replace("{{title}}", escape(film.footage.title or type(film.footage.env).__name__)).replace(
        "{{data}}", text
    )


def _address(picture: NDArray[np.uint8], ground: NDArray[np.uint8] | None = None) -> str:
    """An image, or what of it differs from `ground`, the rest transparent."""
    from PIL import Image

    if ground is not None:
        differs = np.logical_or.reduce([picture[..., i] != ground[..., i] for i in range(3)])
        for axis, by in ((0, 1), (0, -1), (1, 1), (1, -1)) * 2:  # a margin: edges blur where a browser scales them
            differs = differs | np.roll(differs, by, axis)
        whole = np.zeros((*differs.shape, 4), np.uint8)
        whole[differs, :3], whole[differs, 3] = picture[differs], 255
        picture = whole
    content = io.BytesIO()
    Image.fromarray(picture).save(content, "WEBP", lossless=True, quality=20, method=1)
    return f"data:image/webp;base64,{base64.b64encode(content.getvalue()).decode('ascii')}"


def embedded(film: Film) -> str:
    """The player in a frame of its own, for notebooks."""
    return f'<iframe srcdoc="{escape(page(film))}" style="width:100%;height:{HEIGHT}px;border:0"></iframe>'
