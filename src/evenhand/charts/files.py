"""Charts as files and as text, without a browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenhand._files import write_whole
from evenhand.errors import InputError

FORMATS = ("pdf", "svg", "png")


def save(chart: Any, stem: str | Path, formats: str | Sequence[str] = FORMATS) -> list[Path]:
    """Write a chart as files with this stem: "share" gives share.pdf, share.svg and share.png.

    A stem that ends in one of the formats is written in that format alone. No browser is needed.
    """
    stem, formats = Path(stem), [formats] if isinstance(formats, str) else formats
    if stem.suffix[1:] in FORMATS:
        stem, formats = stem.with_suffix(""), [stem.suffix[1:]]
    unknown = [one for one in formats if one not in FORMATS]
    if unknown:
        raise InputError(f"format {unknown[0]!r}; allowed are {', '.join(FORMATS)}")
    import vl_convert as vlc

    spec, version = chart.to_json(validate=False), _version()
    makers: dict[str, Any] = {
        "svg": lambda: to_svg(chart).encode(),
        "pdf": lambda: vlc.vegalite_to_pdf(spec, vl_version=version),
        "png": lambda: vlc.vegalite_to_png(spec, vl_version=version, scale=2),
    }
    paths = []
    for one in formats:
        path = stem.with_name(f"{stem.name}.{one}")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, makers[one]())
        paths.append(path)
    return paths


def to_svg(chart: Any) -> str:
    """A chart as the text of an SVG picture, for a page that needs nothing else."""
    import vl_convert as vlc

    svg: str = vlc.vegalite_to_svg(chart.to_json(validate=False), vl_version=_version())
    return svg


def _version() -> str:
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
