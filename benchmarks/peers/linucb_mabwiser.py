"""mabwiser: LinUCB, by the inverse of the chosen arm's matrix."""

import numpy as np
from harness import N_ARMS, Rounds, tell
from mabwiser.mab import MAB, LearningPolicy


def main() -> None:
    rounds = Rounds()
    contexts = [np.array([x]) for x in rounds.shared]
    bandit = MAB(list(range(N_ARMS)), LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0), seed=1)
    bandit.fit([0], [rounds.shared_rewards[0][0]], contexts[0])

    def play(number: int) -> float:
        earned = 0.0
        for t in range(number):
            t %= len(contexts)
            arm = bandit.predict(contexts[t])
            reward = rounds.shared_rewards[t][arm]
            bandit.partial_fit([arm], [reward], contexts[t])
            earned += reward
        return earned

    tell("mabwiser", play, rounds.shared_rewards)


if __name__ == "__main__":
    main()
