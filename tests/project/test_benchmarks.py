"""The benchmarks measure what they say and write what they measured. No time is asserted."""

import gc
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import live, others, report, sections, simulated
from benchmarks.__main__ import Plan, better, measure_all, quick
from benchmarks.peers import harness

import evenhand as eh
from evenhand.simulation._compiled_rounds import run

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def tidy():
    """Measuring tidies up before every repeat, which takes long with all that other tests left."""
    gc.freeze()
    yield
    gc.unfreeze()


FIGURES = {"rounds", "repeats", "best", "median", "cpu", "yardsticks", "yardstick"}


def figures(best: float, **more: object) -> dict:
    numbers = {"median": 1.1 * best, "cpu": best, "yardsticks": best / 2, "yardstick": 2.0}
    return {"best": best, "rounds": 100, "repeats": 5, **numbers, **more}


def made_up() -> dict:
    fair, top = {"policy": report.FAIR}, {"policy": "TopInterval"}
    ages = [
        figures(best, **policy, kind=kind, t=t, n=1000, d=5)
        for policy, kind, t, best in [
            (fair, "simulated", "early", 20.0),
            (fair, "simulated", "late", 30.0),
            (fair, "live", "early", 70.0),
            (fair, "live", "late", 35.0),
        ]
    ]
    ours = {"what": "ours", "version": "0.1.0", "numpy": "2.0", "learned": 0.9}
    theirs = {"what": "theirs", "version": "3.2", "numpy": "none", "learned": 0.8}
    return {
        "date": "2020-02-02",
        "command": "make bench",
        "machine": {"CPU": "abacus", "cores": "1"},
        "simulated": [
            figures(1.0, **fair, n=10, d=2),
            figures(0.5, **top, n=10, d=2),
            figures(123.4, **fair, n=1000, d=2),
            figures(1234.5, **fair, n=1000, d=40),
        ],
        "ages": ages,
        "long": [figures(1.0, t=1_000), figures(2.0, t=100_000)],
        "settings": [figures(7.0, name="a setting")],
        "through_simulate": [figures(1.5)],
        "others": [
            figures(4.0, name="evenhand TopInterval", when="before", **ours),
            figures(100.0, name="swift", **theirs),
            figures(30.0, name="swifter", **theirs),
            {"name": "absent", "what": "nothing", "version": "9", "reason": "does not install"},
            figures(5.0, name="evenhand TopInterval", when="after", **ours),
        ],
    }


def rows(page: str) -> list[list[str]]:
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_page_shows_the_figures() -> None:
    page = report.page(made_up())
    table = rows(page)
    assert ["n = 10", "d = 2", "d = 40"] in table
    assert ["TopInterval", "0.50 (0.25)", ""] in table
    assert [report.FAIR, "123 (61.7)", "1,234 (617)"] in table
    assert [
        *(report.FAIR, "1,000", "5"),
        *("20.0 (10.0)", "30.0 (15.0)", "1.50"),
        *("70.0 (35.0)", "35.0 (17.5)", "0.50"),
    ] in table
    assert ["100,000", "2.00 (1.00)"] in table
    assert ["a setting", "7.00 (3.50)"] in table
    assert "Made on 2020-02-02 by `make bench`. CPU abacus, cores 1." in page
    # All figures: 4 simulated, 1 through simulate, 4 ages, 2 long, 1 setting, 4 libraries.
    head = table.index(
        ["what (policy, n, d)", "best", "median", "CPU", "yardsticks", "rounds", "repeats"]
    )
    assert len(table[head + 2 :]) == 16
    assert all(len(line) == 7 and all(line) for line in table[head:])


def test_libraries_are_compared_with_our_slower_figure() -> None:
    table = rows(report.page(made_up()))
    assert ["swifter", "3.2, NumPy none", "30.0 (15.0)", "33.0", "0.80", "6.0"] in table  # 30 / 5
    assert ["absent", "9", "does not install", "", "", ""] in table


def test_a_ratio_is_the_smaller_of_microseconds_and_yardsticks() -> None:
    ours = figures(2.0, name="ours")
    other = figures(20.0, name="other") | {"yardsticks": 8.0}  # 10 times as long, or 8 times
    assert report.ratio(other, [ours], "ours") == 8.0
    assert report.ratio(other, [ours], "nobody") is None


def test_disturbed_figures_have_a_star() -> None:
    results = made_up()
    results["settings"][0]["yardstick"] = 2.41  # all others have 2.0
    table = rows(report.page(results))
    assert ["a setting", "7.00* (3.50)"] in table
    assert sum("*" in cell for line in table for cell in line if "**" not in cell) == 2
    results["settings"][0]["yardstick"] = 2.39
    assert ["a setting", "7.00 (3.50)"] in rows(report.page(results))


def test_the_better_row_is_kept() -> None:
    old = [figures(3.0), figures(1.0), {"reason": "none"}]
    new = [figures(2.0), figures(4.0), figures(9.0)]
    assert [row["best"] for row in better(old, new)] == [2.0, 1.0, 9.0]
    assert better(new, [*new[:2], {"reason": "none"}])[2] == new[2]


def test_goals() -> None:
    goals = {goal.what: goal for goal in report.goals(made_up())}
    assert [goal.met for goal in goals.values()] == [
        *(True, True, False),  # 1.0 of 1.1; 4900 of 4000 times; twice as long at t = 100,000
        *(False, True, True, True),  # live at n = 1,000: 70 and 35 of 40, and of 150
        False,  # 30 / 5 = 6 times
    ]
    assert goals["less CPU than the authors' code, 4.9 ms a round (cited)"].measured == (
        "4,900 times (CPU 1.00)"
    )
    assert list(goals.values())[-1].measured == "6.0 times (swifter)"


def test_goals_without_figures_are_left_out() -> None:
    empty = {"simulated": [], "ages": [], "long": [], "others": []}
    assert report.goals(empty) == []


@pytest.mark.parametrize(
    ("value", "text"), [(0.7449, "0.74"), (12.34, "12.3"), (99.96, "100.0"), (1234.5, "1,234")]
)
def test_short(value: float, text: str) -> None:
    assert report.short(value) == text


@pytest.mark.slow
def test_measurement_of_one_policy_ends_in_a_page() -> None:
    plan = Plan(
        cells=[(10, 2)],
        kinds={"GroupFairTopInterval": eh.GroupFairTopInterval},
        settings=["GroupFairTopInterval"],
        seconds=0.001,
        repeats=2,
        last=1_000,
        libraries=False,
        patience=0.0,
    )
    told: list[str] = []
    results = measure_all(plan, True, told.append)
    assert told[:2] == ["compiling", "n = 10, d = 2: GroupFairTopInterval"]
    assert [(row["kind"], row["t"]) for row in results["ages"]] == [
        ("simulated", "early"),
        ("live", "early"),
        ("simulated", "late"),
        ("live", "late"),
    ]
    measured = [*results["simulated"], *results["ages"], *results["long"], *results["settings"]]
    assert len(measured) == 1 + 4 + 1 + 1
    for row in [*measured, *results["through_simulate"]]:
        assert row.keys() >= FIGURES
        assert 0.0 < row["best"] <= row["median"]
        assert row["yardsticks"] > 0.0
        assert row["rounds"] >= 20
    page = report.page(results)
    assert "`python -m benchmarks --quick`" in page
    assert "Beside other libraries" not in page
    assert not re.search(r"/\w+/|://", page)  # nothing that identifies the machine


def test_quick_plan_has_all_policies() -> None:
    assert list(quick().kinds) == sorted(quick().kinds)
    assert {"GroupFairTopInterval", "NaiveFair", "TopInterval"} <= set(quick().kinds)


def test_rounds_in_pieces_are_the_rounds_of_run() -> None:
    place, stream = simulated.world(10, 2), np.random.SeedSequence(5)
    whole = simulated.make(eh.GroupFairTopInterval, 10, 2)
    pulls = run(whole, place, 60, stream).pulls
    pieces = simulated.make(eh.GroupFairTopInterval, 10, 2)
    generator = np.random.default_rng(stream)
    instance = place.begin(generator)
    for number in (1, 19, 40):
        simulated.rounds(pieces, instance, generator, number)
    assert pieces.round == 60
    assert pieces.counts.tolist() == pulls.tolist()


@pytest.mark.slow
def test_a_life_ages_but_measuring_does_not_change_it() -> None:
    life = simulated.Life(eh.TopInterval, 10, 2)
    life.age(100)
    life.age(300)
    before = life.policy.counts
    assert (life.policy.round, before.sum()) == (300, 300)
    assert life.simulated(0.0001, 2)["rounds"] >= 20
    assert live.live(life, 0.0001, 2)["rounds"] >= 20
    assert life.policy.round == 300
    assert life.policy.counts.tolist() == before.tolist()
    life.play(350)
    assert (life.policy.round, life.policy.counts.sum()) == (350, 350)


def test_measure_counts_rounds_and_repeats() -> None:
    played: list[int] = []
    measured = harness.measure(lambda: played.append, 50, repeats=4)
    assert played == [50] * int(measured["repeats"])
    assert 4 <= measured["repeats"] <= 12
    assert measured.keys() == FIGURES


def test_enough_rounds_keeps_to_its_bounds() -> None:
    assert harness.enough_rounds(lambda _: None, 1e9, least=20, most=70) == 70
    assert harness.enough_rounds(lambda n: sum(range(1000 * n)), 1e-9, least=20, most=70) == 20


def test_learned_is_zero_for_uniform_choice_and_one_for_the_best() -> None:
    rewards = [[1.0, 3.0], [2.0, 0.0]]
    assert harness.learned(lambda n: {2: 3.0 + 2.0}[n], rewards) == 1.0
    assert harness.learned(lambda n: {2: 2.0 + 1.0}[n], rewards) == 0.0


def test_rounds_of_the_harness_are_linear() -> None:
    drawn = harness.Rounds(number=30, seed=2)
    contexts, shared = np.array(drawn.contexts), np.array(drawn.shared)
    assert contexts.shape == (30, 10, 5)
    difference = np.array(drawn.shared_rewards) - np.array(drawn.rewards)
    assert np.all(difference[:, 0] == 0.0)  # the shared context is the first arm's
    for arm in range(1, 10):  # the noise of a round cancels, and the coefficients are left
        design = shared - contexts[:, arm]
        theta = np.linalg.lstsq(design, difference[:, arm], rcond=None)[0]
        assert design @ theta == pytest.approx(difference[:, arm])
        assert np.all((theta > 0.0) & (theta < 0.2))


def test_requirements_name_versions_and_nothing_else() -> None:
    names = []
    for requirement in others.requirements():
        assert re.fullmatch(r"[a-z]+==[0-9.]+", requirement)
        names.append(requirement.split("==")[0])
        assert (ROOT / "benchmarks" / "peers" / f"linucb_{names[-1]}.py").exists()
    assert sorted(others.WHAT) == names


def test_the_reason_of_a_failure_has_no_addresses() -> None:
    output = "Looking\nERROR: no match in https://somewhere/simple for /home/me/x\nnote: an error\n"
    assert others.why(output) == "ERROR: no match in (...) for (...)"
    assert others.why("one\n\ntwo\n") == "two"
    assert others.why("") == "it says nothing"


def test_a_failing_command_gives_its_reason() -> None:
    command = [sys.executable, "-c", "raise ValueError('no such thing')"]
    assert others._run(command) == ("", "ValueError: no such thing")
    assert others._run([sys.executable, "-c", "print(7)"]) == ("7\n", None)
    assert others._run(["no-such-command"])[1] is not None


def test_sections_are_replaced_and_kept(tmp_path):
    page = tmp_path / "RESULTS.md"
    page.write_text("# Page\n")
    sections.put("audit of 10", "## Ten\n\nold", page)
    sections.put("coverage", "## Often", page)
    sections.put("audit of 10", "## Ten\n\nnew", page)
    text = page.read_text()
    assert text.startswith("# Page\n") and "old" not in text
    assert sections.kept(page).count("##") == 2 and "new" in sections.kept(page)
    page.write_text("# Another\n" + sections.kept(page))
    assert sections.kept(page).count("##") == 2
