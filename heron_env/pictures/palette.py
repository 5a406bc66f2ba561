"""Style and colours of visibility matrices: blue is exact, yellow to brown is noise, pale grey is hidden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXACT_COLOUR, HIDDEN_COLOUR, INK, GREY = "#0072B2", "#ECECEC", "#222222", "#6B6B6B"
TOLD_COLOUR, RED = "#AA4499", "#CC3311"
SERIES: Final = (EXACT_COLOUR, "#D55E00", "#009E73", "#AA4499", "#E69F00")
"""Of lines that stand for different things: Okabe and Ito's, told apart by colour-blind readers."""
NOISE_COLOURS: Final = ("#F6D98B", "#E69F00", "#D55E00", "#6E2600")
STYLE: Final[Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": False,
    "xtick.color": GREY,
    "ytick.color": INK,
    "text.color": INK,
    "hatch.linewidth": 0.7,
    "svg.hashsalt": "heron_env",
    "text.parse_math": False,  # a name may hold $
}
FEW_FACTORS = 6
"""So many noise factors get a colour each; more share a colour bar."""
STEPS = 32
"""Colours of that bar."""


@contextmanager
def picture_style() -> Iterator[None]:
    """Draw in the house style, leaving the caller's settings alone. Raises ConfigError where matplotlib is missing."""
    with styled("pictures", STYLE):
        yield


@contextmanager
def styled(what: str, style: Any) -> Iterator[None]:
    """Draw `what`, "figures", with these settings of matplotlib. Raises ConfigError where it is missing."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ConfigError(f"{what} need matplotlib: pip install 'heron_env[plots]'") from error
    with mpl.rc_context(style):
        yield


class Palette:
    """Colours of factors: one each, or a logarithmic scale; 0 is below it, masked is hidden. `norm`: matplotlib's."""

    def __init__(self, factors: NDArray[np.float64]) -> None:
        from matplotlib.colors import BoundaryNorm, LinearSegmentedColormap

        self.factors = np.unique(factors[factors > 0.0])
        self.few = len(self.factors) <= FEW_FACTORS
        ramp = self.factors if len(self.factors) else np.ones(1)
        if self.few:
            around = np.concatenate([[0.0], ramp, [2.0 * ramp[-1]]])
            edges = (around[1:] + around[:-1]) / 2.0
        else:
            edges = np.geomspace(ramp[0] * 0.999, ramp[-1] * 1.001, STEPS + 1)
        colours = LinearSegmentedColormap.from_list("noise", NOISE_COLOURS)
        if len(ramp) == 1:
            colours = LinearSegmentedColormap.from_list("noise", NOISE_COLOURS[1:2] * 2)
        steps = len(edges) - 1
        self.norm = BoundaryNorm(edges, steps)  # a logarithmic norm would mask 0, and draw what is exact as hidden
        self.colours = colours.resampled(max(2, steps)).with_extremes(under=EXACT_COLOUR, bad=HIDDEN_COLOUR)

    def of(self, factor: float) -> Any:
        """The colour of one factor."""
        return EXACT_COLOUR if factor == 0.0 else self.colours(self.norm(factor))

    def dots(self, axes: Axes, places: Sequence[tuple[float, float]]) -> list[Any]:
        """A dot where a quantity is told, whatever is seen of it; the entry of the legend."""
        if not places:
            return []
        x, y = zip(*places, strict=True)
        style: dict[str, Any] = {"marker": "o", "color": TOLD_COLOUR, "linestyle": "none", "markeredgecolor": "white"}
        return list(
            axes.plot(x, y, markersize=5.0, markeredgewidth=0.6, zorder=4, label="told into its inbox", **style)
        )

    def legend(self, axes: Axes, extra: Sequence[Any], additive: bool) -> None:
        """What the colours mean, right of the axes; many factors as a colour bar below it."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.patches import Patch

        handles = [Patch(facecolor=EXACT_COLOUR, label="exact")]
        if self.few:
            handles += [Patch(facecolor=self.of(f), label=f"noise {f:g}") for f in self.factors.tolist()]
        if additive:
            handles.append(Patch(facecolor=GREY, edgecolor="white", hatch="////", label="noise: share of the range"))
        handles.append(Patch(facecolor=HIDDEN_COLOUR, label="hidden"))
        axes.legend(
            handles=[*handles, *extra], loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8.5,
            handlelength=1.1, handleheight=1.0, borderaxespad=0.4,
        )  # fmt: skip
        if not self.few:
            figure = axes.get_figure()
            assert figure is not None, "axes belong to a figure"
            bar = figure.colorbar(
                ScalarMappable(self.norm, self.colours), ax=axes, orientation="horizontal", fraction=0.04, aspect=40,
                shrink=0.6, anchor=(0.0, 1.0), pad=0.02, drawedges=False,
            )  # fmt: skip
            ticks = self.norm.boundaries[:: STEPS // 4]
            bar.set_ticks(ticks.tolist(), labels=[f"{tick:.2g}" for tick in ticks], minor=False)
            bar.minorticks_off()
            bar.set_label("noise factor", fontsize=8.5, loc="left")
            bar.ax.tick_params(labelsize=8.0, length=2.0)
