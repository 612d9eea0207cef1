"""What a report says of its making is enough to make it again."""

from __future__ import annotations

import hashlib
import json
import shlex

import numpy as np
import pytest

import evenhand
import evenhand as eh
from audit_logs import made_log, page_of
from evenhand.audit._input import checksums
from evenhand.audit._input.checksums import NOT_A_FILE
from evenhand.cli import main
from log_formats import assert_near


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def test_the_checksum_of_a_file_is_that_of_its_bytes(tmp_path):
    path = tmp_path / "log.csv"
    made_log(61, n=60, d=1).to_csv(path, index=False)
    told = eh.audit(path).to_dict()["provenance"]
    assert told["checksum"]["value"] == sha256(path.read_bytes())
    (file,) = told["checksum"]["files"]
    assert file == {
        "name": "log.csv",
        "bytes": path.stat().st_size,
        "sha256": told["checksum"]["value"],
    }
    assert told["columns"] == ["x0", "group", "reward"]


def test_a_folder_has_the_checksum_of_sha256sum(tmp_path):
    log = made_log(62, n=90, d=1)
    (tmp_path / "b").mkdir()
    for name, part in {"b/2.csv": log[:30], "a.csv": log[30:50], "c.csv": log[50:]}.items():
        part.to_csv(tmp_path / name, index=False)
    told = eh.audit(tmp_path).facts.provenance.checksum
    names = ["a.csv", "b/2.csv", "c.csv"]
    lines = [f"{sha256((tmp_path / name).read_bytes())}  {name}\n" for name in names]
    assert [name for name, _, _ in told.files] == names
    assert told.value == sha256("".join(lines).encode())
    assert eh.audit(f"{tmp_path}/*.csv").facts.provenance.checksum.value != told.value


def test_a_table_has_a_checksum_whatever_the_order_of_its_rows(tmp_path):
    import duckdb

    log = made_log(63, n=200, d=1)
    path = tmp_path / "log.db"
    with duckdb.connect(str(path)) as con:
        con.register("frame", log)
        con.execute("CREATE TABLE one AS SELECT * FROM frame")
        con.execute("CREATE TABLE two AS SELECT * FROM frame ORDER BY x0")
        con.execute("CREATE TABLE three AS SELECT * FROM two")
        con.execute("UPDATE three SET x0 = x0 + 1e-9 WHERE x0 = (SELECT max(x0) FROM three)")
    first, same, other = (
        eh.audit(f"duckdb://{path}::{name}").facts.provenance for name in ("one", "two", "three")
    )
    assert first.checksum == same.checksum and "DuckDB" in first.checksum.method
    assert first.checksum.value != other.checksum.value
    assert first.command == f"evenhand audit duckdb://{path}::one"


def test_a_frame_has_a_checksum_if_its_rows_have_hashes():
    log = made_log(64, n=100, d=1)
    told = eh.audit(log).facts.provenance
    again = eh.audit(log.sample(frac=1.0, random_state=1)).facts.provenance
    assert told.checksum == again.checksum and told.checksum.value
    assert told.command is None and told.call == "evenhand.audit(log)"
    lists = log.assign(extra=[[1]] * 100)
    told = eh.audit(lists, leave_out=["extra"]).facts.provenance.checksum
    assert told.value is None and told.method == NOT_A_FILE


def test_a_file_that_changes_meanwhile_stops_the_audit(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    made_log(65, n=60, d=1).to_csv(path, index=False)
    sha = hashlib.sha256

    def changing(*given):
        path.write_text(path.read_text() + "0,F,1\n")
        return sha(*given)

    monkeypatch.setattr(checksums.hashlib, "sha256", changing)
    with pytest.raises(ValueError, match=r"log\.csv changed while it was read; audit it again"):
        eh.audit(path)


def everything(tmp_path):
    log = made_log(66, n=400, d=2, groups=("a man", "F"))
    log["decision"] = np.where(log["reward"] > 1, "yes, it is", "no")
    log["decision"] = log["decision"].where(log.index % 9 > 0, "?").replace("yes, it is", "yes")
    log["my town"] = np.array(["x", "y", "-1"])[np.arange(400) % 3]
    log["id"] = np.arange(400) // 2
    path = tmp_path / "my log.csv"
    log.drop(columns="reward").to_csv(path, index=False, sep=";", encoding="latin-1")
    return path, {
        "group": "group", "reward": "decision", "cluster": "id", "reference": "a man",
        "reward_values": {"yes": 1, "no": 0.5}, "missing": {"x1": "fill", "others": "drop"},
        "missing_marks": {"my town": [-1], "*": ["?"]}, "nominal_columns": ["my town"],
        "level": 0.9, "leave_out": ["x0"], "encoding": "latin-1", "delimiter": ";",
        "unfavourable": True, "title": "It's mine", "categories": 5, "engine": "duckdb",
    }  # fmt: skip


def numbers(plain):
    return {k: v for k, v in plain.items() if k not in ("made", "method", "limits", "summary")}


@pytest.mark.slow
def test_the_command_and_the_call_repeat_it(tmp_path):
    path, options = everything(tmp_path)
    written = eh.audit(path, **options).to_dict()
    command, call = written["provenance"]["command"], written["provenance"]["call"]
    again = eval(call, {"evenhand": evenhand}).to_dict()
    assert_near(numbers(again), numbers(written), "")
    name, *rest = shlex.split(command)
    assert name == "evenhand"
    assert main([*rest, "--out", str(tmp_path / "a.json")]) == 0
    told = json.loads((tmp_path / "a.json").read_text())
    assert_near(numbers(told), json.loads(json.dumps(numbers(written))), "")


def test_what_has_no_flag_has_no_command(tmp_path):
    path = tmp_path / "log.csv"
    made_log(67, n=60, d=1).to_csv(path, index=False)
    told = eh.audit(path, units={"x0": 5}).facts.provenance
    assert told.command is None and told.call.endswith('units={"x0": 5})')


@pytest.mark.slow
def test_versions_and_the_page(tmp_path):
    path = tmp_path / "log.csv"
    made_log(68, n=60, d=1).to_csv(path, index=False)
    audit = eh.audit(path)
    versions = audit.facts.provenance.versions
    assert list(versions) == ["python", "evenhand", "duckdb", "ibis", "numpy", "pandas", "scipy"]
    assert versions["evenhand"] == eh.__version__ and versions["numpy"] == np.__version__
    assert "unknown" not in versions.values()
    page = page_of(audit)
    part = page[page.index("How this was made") : page.index("What this cannot say")]
    for text in (
        audit.facts.provenance.checksum.value,
        f"numpy {np.__version__}",
        "evenhand audit",
    ):
        assert text in part
