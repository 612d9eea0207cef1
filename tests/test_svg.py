"""Pictures that a process beside this one draws are those that are drawn here."""

from __future__ import annotations

import json

import pytest

from evenhand import _svg

VERSION = "6.1"
SPEC = json.dumps(
    {
        "data": {"values": [{"who": "Zoë", "height": 1}, {"who": "Ann", "height": 2}]},
        "mark": "bar",
        "encoding": {
            "x": {"field": "who", "type": "nominal"},
            "y": {"field": "height", "type": "quantitative"},
        },
    }
)


@pytest.fixture
def beside(monkeypatch):
    monkeypatch.setattr(_svg, "_beside", None)
    _svg.start_beside()
    process = _svg._beside[1]
    yield process
    _svg._end(process)


def test_the_picture_is_the_same(beside):
    assert _svg._asked(SPEC, VERSION) == here(SPEC)
    assert _svg.svg_of(SPEC, VERSION) == here(SPEC)
    assert beside.poll() is None


def test_started_once(beside):
    _svg.start_beside()
    assert _svg._beside[1] is beside


def test_a_process_that_ended_is_done_without(beside):
    beside.kill()
    beside.wait()
    assert _svg._asked(SPEC, VERSION) is None
    assert _svg.svg_of(SPEC, VERSION) == here(SPEC)


def test_what_cannot_be_drawn_is_an_error_here(beside):
    with pytest.raises(ValueError):
        _svg.svg_of('{"mark": "no such mark"}', VERSION)
    assert _svg.svg_of(SPEC, VERSION) == here(SPEC)


def test_without_a_process_it_is_drawn_here(monkeypatch):
    monkeypatch.setattr(_svg, "_beside", None)
    monkeypatch.setattr(_svg.sys, "executable", "")
    _svg.start_beside()
    assert _svg._beside is None
    assert _svg.svg_of(SPEC, VERSION) == here(SPEC)


def here(spec: str) -> str:
    import vl_convert

    return vl_convert.vegalite_to_svg(spec, vl_version=VERSION)
