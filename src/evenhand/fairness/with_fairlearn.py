"""A log as Fairlearn's MetricFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand import _checks
from evenhand.errors import InputError, MissingExtraError, setting
from evenhand.events._decisions import decided
from evenhand.fairness._log_sums import arm_column, group_sums

if TYPE_CHECKING:
    from fairlearn.metrics import MetricFrame

KINDS = ("reward", "pulls")


def metric_frame(
    log: pd.DataFrame,
    group: str = "group",
    reward: str = "reward",
    *,
    selection: str = "reward",
    **choices: Any,
) -> MetricFrame:
    """Fairlearn's own MetricFrame of a log: selection rate, mean reward and count by group.

    It has intervals only by bootstrap, and takes rows, not sums; `fairness_report` has the same
    numbers from sums. Rows without a reward are left out of the mean reward and, with
    `selection="reward"`, of everything. Needs the extra `fairness`.

    Args:
        log: a row per decision.
        group: the column of the group.
        reward: the column of the observed reward.
        selection: what a selection is. "reward": a person whose reward is 1, of all people with a
            reward; all rewards are 0 or 1 then. "pulls": an arm that is chosen, of all chances.
        choices: other arguments of `group_sums`, such as `groups`, `arm`, `arms` and `chances`.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> log = pd.DataFrame({"group": ["F", "F", "M", "M"], "reward": [0, 1, 1, 1]})
        >>> frame = eh.fairness.metric_frame(log)
        >>> frame.by_group["selection_rate"].to_dict(), float(frame.difference()["selection_rate"])
        ({'F': 0.5, 'M': 1.0}, 0.5)
    """
    try:
        from fairlearn.metrics import MetricFrame, selection_rate
    except ImportError:
        raise MissingExtraError(
            "metric_frame needs Fairlearn: pip install 'evenhand[fairness]'"
        ) from None
    _checks.one_of("selection", selection, KINDS)
    sums = group_sums(log, group, reward, **choices)
    log = decided(log)
    rewards = log[reward].to_numpy(dtype=np.float64)
    if group in log.columns:
        labels = log[group].astype(str).to_numpy(dtype=object)
    else:
        of = choices["groups"]
        names = np.array([str(name) for name in getattr(of, "labels", of)], dtype=object)
        labels = names[log[arm_column(log, choices.get("arm"))].to_numpy(dtype=np.int64)]
    seen = ~np.isnan(rewards)
    if selection == "reward":
        if not sums.has("positives"):
            raise InputError(
                f"{reward} has values other than 0 and 1; allowed with "
                f"{setting('selection', 'reward')} are 0 and 1, or take "
                f"{setting('selection', 'pulls')}"
            )
        rewards, labels = rewards[seen], labels[seen]
        chosen, weights, seen = rewards, np.ones(len(rewards)), seen[seen]
    else:
        chances = sums.chances()
        if chances is None:
            raise InputError(
                f"{setting('selection')} is 'pulls' without chances; give groups, arms or chances"
            )
        # One more row per group, for the chances that were not taken: its weight is their number.
        left = chances - sums.column("n")
        chosen = np.concatenate([np.ones(len(log)), np.zeros(len(left))])
        weights = np.concatenate([np.ones(len(log)), left])
        labels = np.concatenate([labels, np.array(sums.groups, dtype=object)])
        rewards = np.concatenate([np.where(seen, rewards, 0.0), np.zeros(len(left))])
        seen = np.concatenate([seen, np.zeros(len(left), dtype=bool)])
    return MetricFrame(
        metrics={"selection_rate": selection_rate, "mean_reward": _mean, "count": _count},
        y_true=rewards,
        y_pred=chosen,
        sensitive_features=pd.Series(labels, name="group"),
        sample_params={
            "selection_rate": {"sample_weight": weights},
            "mean_reward": {"sample_weight": seen.astype(np.float64)},
            "count": {"sample_weight": np.arange(len(weights)) < len(log)},
        },
    )


def _mean(y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike) -> float:  # noqa: ARG001
    """The mean reward of the rows that have one."""
    weights = np.asarray(sample_weight)
    total = weights.sum()
    return float(np.asarray(y_true) @ weights / total) if total > 0.0 else float("nan")


def _count(y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike) -> int:  # noqa: ARG001
    """Decisions."""
    return int(np.asarray(sample_weight).sum())
