"""contextualbandits: LinUCB by Sherman and Morrison, one context for all arms."""

import numpy as np
from contextualbandits.online import LinUCB
from harness import N_ARMS, Rounds, tell


def main() -> None:
    rounds = Rounds()
    contexts = [np.array([x]) for x in rounds.shared]
    bandit = LinUCB(N_ARMS, fit_intercept=False, use_float=False, method="sm", random_state=1)

    def play(number: int) -> None:
        for t in range(number):
            t %= len(contexts)
            arm = bandit.predict(contexts[t])
            reward = rounds.shared_rewards[t][arm[0]]
            bandit.partial_fit(contexts[t], arm, np.array([reward]))

    tell("contextualbandits", play)


if __name__ == "__main__":
    main()
