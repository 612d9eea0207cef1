"""Pages from templates: all look the same, and none needs another file.

A view puts plain data together, and a template in `templates` writes the HTML. All input is
escaped, except for pictures drawn by our own charts.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from evenhand.errors import MissingExtraError

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(template: str, **names: Any) -> str:
    """A whole page, with its style in it: it needs no network and no other file.

    Args:
        template: a file in `templates`, such as "audit.html".
        names: the values that the template uses. A missing one is an error.

    Example:
        >>> from evenhand._html import render
        >>> page = render("base.html", title="Loans & more")
        >>> "<h1>Loans &amp; more</h1>" in page
        True
    """
    return _environment().get_template(template).render(**names)


def drawn(svg: str) -> Markup:
    """A picture from `evenhand.charts`, to be put into a page unescaped; nothing else may be.

    Args:
        svg: from `charts.to_svg`. Text in it is escaped already.

    Example:
        >>> from evenhand._html import drawn
        >>> drawn("<svg></svg>")
        Markup('<svg></svg>')
    """
    _environment()  # says what to install
    from markupsafe import Markup

    return Markup(svg)


@cache
def stylesheet() -> str:
    """The style of all pages, for those that have it in a file of its own.

    Example:
        >>> from evenhand._html import stylesheet
        >>> "nav" in stylesheet()
        True
    """
    return (files(__name__) / "style.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise MissingExtraError("pages need jinja2: pip install 'evenhand[charts]'") from error
    from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["style"] = Markup(stylesheet())
    return environment


def _template(name: str) -> str | None:
    path = files(__name__) / "templates" / name
    return path.read_text(encoding="utf-8") if path.is_file() else None
