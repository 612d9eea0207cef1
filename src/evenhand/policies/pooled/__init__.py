"""PooledGroupFair: arms of a group learn from each other, and groups are compared by their means.

`_layout` says what is kept, `_linear` has the small matrices, `_posterior` the model,
`_hyperparameters` its variances, `_learning` when they are estimated, `_choosing` the arm of a
round; `policy` is what users see, with `report` for what was learned.
"""

from evenhand.policies.pooled.policy import PooledGroupFair

__all__ = ["PooledGroupFair"]
