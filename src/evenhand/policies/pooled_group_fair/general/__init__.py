"""The general form of PooledGroupFair: attributes, membership by round, arms that come once.

A candidate has a row of weights over columns: 1, the levels of every attribute, and the
intersections. `_rule` says which, `_posterior` has the model, `_variances` estimates its variances,
`_learning` learns from rewards, `_choosing` scores candidates; `beliefs` and `report` tell what was
learned.
"""
