"""The reasons of a decision: what made the choice, and the values of the features."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from evenhand.service._engine import Engine
from evenhand.service._features import CandidateFeature, Encoder
from evenhand.service._ledger import asks
from evenhand.service._reasons import decided_by, reasons
from evenhand.service.config import load
from serving import ARMS, write_config

NAMES = ("ann", "bo", "cy")
INF = np.inf


@pytest.mark.parametrize(
    ("policy", "corrected", "widths", "arm", "explored", "by", "words"),
    [
        (eh.TopInterval, (3, 2, 1), (1, 1, 1), 0, False, "estimate",
         "ann has the highest corrected estimate."),
        (eh.TopInterval, (3, 2, 1), (1, 4, 1), 1, False, "width",
         "ann has the highest corrected estimate, 3, and bo was chosen with 2, because less is "
         "known about it (its width is 4, against 1): the policy adds a part of the width, to "
         "learn."),
        (eh.PooledGroupFair, (3, 2, 1), (1, INF, 1), 1, False, "width",
         "(nothing is known about it"),
        (eh.TopInterval, (3, 2, 1), (1, 4, 1), 1, True, "exploration",
         "bo was drawn at random, in a round that explores: to learn, not for its estimate."),
        (eh.TopInterval, (2, 2, 1), (1, 4, 1), 1, False, "otherwise",
         "No estimate is higher than that of bo, and 1 as high."),
        (eh.TopInterval, (3, 2, 1), (INF, INF, 1), 1, False, "otherwise", "does not always choose"),
        (eh.TopInterval, (3, 2, 1), (4, 1, 1), 1, False, "otherwise", "does not always choose"),
        (eh.UniformRandom, (3, 2, 1), (1, 4, 1), 1, False, "otherwise", "does not always choose"),
        (eh.NaiveFair, (3, 2, 1), (1, 1, 1), 0, False, "otherwise", "NaiveFair also draws at"),
    ],
)  # fmt: skip
def test_what_made_the_choice(policy, corrected, widths, arm, explored, by, words):
    groups = eh.Groups(["F", "M", "M"], sensitive="F")
    half = np.array(corrected, dtype=float) / 2.0
    scores = np.array([half, widths, half], dtype=float)
    reason = decided_by(policy(groups, 1), scores, arm, explored, [0, 1, 2], NAMES.__getitem__)
    assert reason[0] == by and words in reason[1]


def test_a_candidate_that_was_not_available_is_not_mentioned():
    scores = np.array([[9.0, 2.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    policy = eh.TopInterval(["F", "M", "M"], 1)
    reason = decided_by(policy, scores, 1, False, [1, 2], NAMES.__getitem__)
    assert reason == ("estimate", "bo has the highest corrected estimate.")


def test_reasons_have_the_values_of_the_features(tmp_path):
    engine = Engine(load(write_config(tmp_path)))
    engine.open()
    rng = np.random.default_rng(3)
    for k in range(20):
        rows = np.column_stack([np.ones(4), 10 * k + np.arange(4), rng.normal(50, 9, size=4)])
        engine.state.apply(engine.store.write([engine.prepare(f"d{k}", list(ARMS), rows)]).told)
        reward = asks.Reward(f"d{k}", float(rng.normal()), None)
        engine.state.apply(engine.store.write([reward]).told)
    why = reasons(engine.store.connection, "d19", engine.state.arms, engine.encoder)
    engine.close()
    chosen = why.candidates[0]
    incomes = {}
    for candidate in why.candidates:
        values = {reason.feature: reason.value for reason in candidate.reasons}
        incomes[candidate.arm] = values["income"]
        assert values["intercept"] == 1.0 and values["age"] == rows[ARMS.index(candidate.arm), 2]
        own = f"income (1000 EUR a year), {values['income']:.6g},"
        assert any(line.startswith(own) for line in candidate.words)
        assert not any("itself, 1" in line for line in candidate.words)
    assert incomes == {arm: 190.0 + k for k, arm in enumerate(ARMS)}
    for candidate in why.candidates[1:]:
        beside = f"compared with the chosen arm's {incomes[chosen.arm]:.6g}"
        assert any(line.endswith(beside) for line in candidate.words)


def test_a_text_has_no_value_to_show_and_categories_are_yes_or_no():
    encoder = Encoder(
        [
            CandidateFeature("town", "category", values=("Bern", "Chur")),
            CandidateFeature("owner", "yes-no"),
            CandidateFeature("note", "text"),
            CandidateFeature("income"),
        ],
        intercept=True,
    )
    assert [encoder.shown(column, 1.0) for column in encoder.columns] == ["", "yes", "yes", "1"]
    assert encoder.shown("town=Chur", 0.0) == "no" and encoder.shown("note", 1.0) == ""
