"""The columns of a log's contexts: features, then membership that came with the round."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.events._header import feature_names
from evenhand.policies.base import Policy


def columns_of(features: Sequence[object] | None, policy: Policy) -> tuple[str, ...]:
    """The names of the features, and those of the levels if membership comes with the round.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.recording._columns import columns_of
        >>> columns_of(["age"], eh.TopInterval(["F", "M"], n_features=1))
        ('age',)
    """
    names = feature_names(features, policy.n_features)
    return (*names, *policy.groups.columns) if policy.groups.changes else names
