"""PooledGroupFair: arms of a group learn from each other, and groups are compared by their means.

`_layout` says what is kept, `_posterior` has the model, `_hyperparameters` estimates its variances,
`_learning` learns from rewards and decides when to estimate them, `_true_learning` and
`_true_posterior` have what true rewards change, `_choosing` the arm of a round; `general` is the
general form. `policy` is what users see, with `report` for what was learned.
"""

from evenhand.policies.pooled_group_fair.policy import PooledGroupFair

__all__ = ["PooledGroupFair"]
