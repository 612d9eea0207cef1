"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand import _atomic_files
from evenhand._atomic_files import write_all, write_whole
from evenhand.errors import InputError

POSIX = pytest.mark.skipif(os.name != "posix", reason="of POSIX")


def test_text_bytes_and_functions_are_written_as_they_are(tmp_path):
    for content in ("a\nß", "a\nß".encode(), lambda file: file.write("a\nß".encode())):
        write_whole(tmp_path / "x", content)
        assert (tmp_path / "x").read_bytes() == "a\nß".encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError, UnicodeEncodeError])
def test_what_stops_halfway_leaves_what_was_there(tmp_path, stop):
    (tmp_path / "x").write_text("before")

    def half(file):
        file.write(b"half")
        raise stop if stop is not UnicodeEncodeError else stop("utf-8", "x", 0, 1, "no")

    with pytest.raises(stop):
        write_all({tmp_path / "y": "new", tmp_path / "x": half})
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "before"


def test_nothing_is_in_its_place_before_all_is_on_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(_atomic_files.os, "fsync", lambda _: synced.append(sorted(names(tmp_path))))
    write_all({tmp_path / "a": "1", tmp_path / "b": "2"})
    assert not {"a", "b"} & {*synced[0], *synced[1]}
    assert sorted(names(tmp_path)) == ["a", "b"]


def names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def test_a_function_can_read_back_what_it_wrote(tmp_path):
    def write(file):
        file.write(b"abc")
        file.seek(0)
        assert file.read() == b"abc"

    write_whole(tmp_path / "x", write)
    assert (tmp_path / "x").read_bytes() == b"abc"


@POSIX
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_modes_are_those_of_open(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "x", "1")
        assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o666 & ~umask
        (tmp_path / "x").chmod(0o640)
        write_whole(tmp_path / "x", "2")
        assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640
    finally:
        os.umask(before)


@POSIX
def test_a_link_goes_on_to_point_there(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "x")
    write_whole(tmp_path / "link", "1")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder" / "x").read_text() == "1"


@POSIX
def test_a_device_is_written_to_and_not_replaced(tmp_path):
    code = "from evenhand._atomic_files import write_whole; write_whole('/dev/stdout', 'shown')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "shown"
    write_whole("/dev/null", "gone")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_long_names_are_written(tmp_path):
    write_whole(tmp_path / ("n" * 250), "1")
    assert names(tmp_path) == ["n" * 250]


@pytest.mark.parametrize("place", ["", "absent/x"])
def test_a_place_where_no_file_can_be_is_told_in_a_line(tmp_path, place):
    with pytest.raises(InputError, match="allowed is a file in a folder that exists"):
        write_whole(tmp_path / place, "1")
