"""HTML pages that need nothing else and no network: one style for all of them."""

from __future__ import annotations

from html import escape

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 68rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem; }
table { border-collapse: collapse; margin: .5rem 0; font-size: .92rem; }
th, td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid #e4e4e4;
         vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.figures { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem; }
.figures.wide { grid-template-columns: 1fr; }
@media (max-width: 50rem) { .figures { grid-template-columns: 1fr; } }
figure { margin: 0; } figcaption { font-size: .85rem; color: #555; }
figure svg { max-width: 100%; height: auto; }
.yes { color: #00694b; font-weight: 600; } .partly { color: #8a5a00; font-weight: 600; }
.no { color: #a33000; font-weight: 600; } .note { color: #555; font-size: .92rem; }
details { margin: .5rem 0; } summary { cursor: pointer; color: #0060a0; }
"""


def page(title: str, body: str) -> str:
    """A whole HTML page that needs nothing else."""
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(title)}, by evenhand</title>"
        f"<style>{STYLE}</style></head>"
        f"<body>{body}</body></html>"
    )
