"""The curves of an abstention, drawn: what is kept against what is rejected, and what is answered against the risk."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import ConfigError, MissingExtra
from .abstention import Abstention

FORMATS = (".png", ".svg")


def check_drawable(file: Path) -> None:
    """Refuse before the work what could not be drawn after it."""
    if file.suffix.lower() not in FORMATS:
        raise ConfigError(f"{file} is neither .png nor .svg", "name a file that ends so")
    if find_spec("matplotlib") is None:
        raise MissingExtra("plots need matplotlib", "pip install matplotlib")


def draw(measured: Abstention, file: Path) -> None:
    """Write one picture: a line per kind of unanswerable question, a cross where the verdict stands."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "whyrank"  # the same figures give the same file
    from matplotlib import pyplot

    figure, (shares, risks) = pyplot.subplots(1, 2, figsize=(11, 5), layout="constrained")
    _fill(shares, risks, measured)
    figure.suptitle(measured.set_name)
    is_svg = file.suffix.lower() == ".svg"
    # By its maker a picture is known as one that may be drawn over.
    made_by = {"Creator": "whyrank", "Date": None} if is_svg else {"Software": "whyrank"}
    try:
        figure.savefig(file, metadata=made_by)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder") from error
    finally:
        pyplot.close(figure)


def _fill(shares: Any, risks: Any, measured: Abstention) -> None:
    for side in measured.sides:
        points = side.curve()
        [line] = shares.plot([p.rejected for p in points], [p.kept for p in points], label=side.name)
        risks.plot([p.coverage for p in points], [p.risk for p in points], color=line.get_color())
        own, other = side.verdicts
        shares.plot([1 - other.kept], [own.kept], marker="x", color=line.get_color())
    shares.set(xlabel="unanswerable rejected", ylabel="answerable kept", xlim=(0, 1.01), ylim=(0, 1.01))
    risks.set(xlabel="answered, of all", ylabel="risk: no answer among those", xlim=(0, 1.01), ylim=(0, 0.51))
    for axes in (shares, risks):
        axes.grid(alpha=0.25)
    shares.legend(fontsize="small", loc="lower left")
