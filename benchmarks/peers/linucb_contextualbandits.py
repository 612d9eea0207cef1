"""contextualbandits: LinUCB by Sherman and Morrison."""

import numpy as np
from contextualbandits.online import LinUCB
from harness import N_ARMS, Rounds, tell


def main() -> None:
    rounds = Rounds()
    contexts = [np.array([x]) for x in rounds.shared]
    bandit = LinUCB(
        N_ARMS, alpha=1.0, fit_intercept=False, use_float=False, method="sm", random_state=1
    )

    def play(number: int) -> float:
        earned = 0.0
        for t in range(number):
            t %= len(contexts)
            arm = bandit.predict(contexts[t])
            reward = rounds.shared_rewards[t][arm[0]]
            bandit.partial_fit(contexts[t], arm, np.array([reward]))
            earned += reward
        return earned

    tell("contextualbandits", play, rounds.shared_rewards)


if __name__ == "__main__":
    main()
