"""A policy in plain Python, for tests that need one which is not compiled."""

import numpy as np

import evenhand as eh


class Greedy(eh.Policy):
    """A plain Python policy, as a user's."""

    def score(self, contexts):
        estimate, width = self.intervals(contexts)
        return np.where(np.isinf(width), np.inf, estimate)
