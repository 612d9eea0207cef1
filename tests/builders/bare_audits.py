"""The bias report of an audit from rows in memory, without an engine: for studies of many logs.

It takes the regressions, the errors and the report from evenhand, and sums up by itself what an
engine sums up. `tests/audit/test_standard_errors.py` compares it with whole audits.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from evenhand.audit._inference.cluster_errors import between_groups
from evenhand.audit._inference.regression_scores import fits_of
from evenhand.audit._inference.standard_errors import robust, robust_groups, weighting_of
from evenhand.audit._settings import AuditSettings
from evenhand.bias import Statistics, bias_report


def bias_of(log, features, reference, cluster=None):
    """The report about zero, with arms and errors as an audit chooses them."""
    settings = AuditSettings(reference=reference)
    log = log.sort_values("group", kind="stable", ignore_index=True)  # as reports name them
    x = np.column_stack([np.ones(len(log)), log[features].to_numpy(dtype=float)])
    y, arms = log["reward"].to_numpy(dtype=float), log.get("arm")
    stats = Statistics.from_rows(x, y, log["group"], arms)
    clusters = None
    if cluster is not None:
        clusters = 0 if arms is None else int(log.groupby("arm")[cluster].nunique().min())
    weighting, _ = weighting_of(stats, settings, clusters)
    places = (
        {} if arms is None else dict(zip(arms, zip(log["group"], arms, strict=True), strict=True))
    )
    fits = fits_of(stats, weighting, places)
    number_of = {label[-1]: k for k, label in enumerate(fits.labels)}
    at = (log["group"] if weighting == "pulls" else arms).map(number_of).to_numpy()
    scores = (y - np.sum(x * fits.vectors[at], axis=1))[:, None] * x
    if cluster is None:
        meat = np.array([scores[at == k].T @ scores[at == k] for k in range(len(fits.labels))])
        enough = robust_groups(stats, settings, weighting, weighted=False)
        errors = robust(meat, stats, fits, weighting, False, True, enough)
        known = {"covariances": errors.covariances, "freedom": errors.freedom}
    else:
        known = _of_clusters(log, cluster, stats, fits, at, scores)
    names = ["intercept", *features]
    return bias_report(stats, reference, weighting=weighting, feature_names=names, **known)


def _of_clusters(log, cluster, stats, fits, at, scores):
    """CR1, with a degree of freedom less than a group has clusters."""
    n, rank, many = len(log), fits.rank.sum(), log[cluster].nunique()
    codes = pd.factorize(log[cluster])[0]
    sums = np.zeros((many, len(fits.labels), scores.shape[1]))
    np.add.at(sums, (codes, at), scores)
    factor = many / (many - 1.0) * (n - 1.0) / (n - rank)
    meat = np.einsum("cki,clj->klij", sums, sums)
    whole = factor * between_groups(fits, meat, len(stats.groups))
    own = log.groupby("group")[cluster].nunique()
    place = {name: g for g, name in enumerate(stats.groups)}
    pairs = combinations(stats.groups, 2) if own.sum() > many else ()  # some cross groups
    return {
        "covariances": {name: whole[g, g] for name, g in place.items()},
        "freedom": {name: own[name] - 1.0 for name in stats.groups},
        "between": {pair: whole[place[pair[0]], place[pair[1]]] for pair in pairs} or None,
    }
