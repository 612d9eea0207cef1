"""evenhand in the very harness that the others run in. `--fair` takes GroupFairTopInterval."""

import sys

import numpy as np
from harness import N_FEATURES, Rounds, tell

import evenhand as eh


def main() -> None:
    rounds = Rounds()
    contexts = [np.array(rows) for rows in rounds.contexts]
    groups = eh.Groups(["F"] * 5 + ["M"] * 5, sensitive="F")
    policy: eh.Policy
    if "--fair" in sys.argv:
        policy = eh.GroupFairTopInterval(groups, N_FEATURES, horizon=1_000_000, noise=0.1, seed=1)
    else:  # what the others have: a ridge of one, and no exploration at random
        policy = eh.TopInterval(
            groups,
            N_FEATURES,
            horizon=1_000_000,
            noise=0.1,
            singular="ridge",
            ridge=1.0,
            exploration="none",
            seed=1,
        )

    def play(number: int) -> float:
        earned = 0.0
        for t in range(number):
            t %= len(contexts)
            decision = policy.select(contexts[t])
            reward = rounds.rewards[t][decision.arm]
            policy.update(decision, reward)
            earned += reward
        return earned

    tell("evenhand", play, rounds.rewards)


if __name__ == "__main__":
    main()
