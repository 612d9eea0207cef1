"""obp: LinUCB by Sherman and Morrison."""

import numpy as np
from harness import N_ARMS, N_FEATURES, Rounds, tell
from obp.policy import LinUCB


def main() -> None:
    rounds = Rounds()
    contexts = [np.array([x]) for x in rounds.shared]
    bandit = LinUCB(dim=N_FEATURES, n_actions=N_ARMS, batch_size=1, epsilon=1.0, random_state=1)

    def play(number: int) -> float:
        earned = 0.0
        for t in range(number):
            t %= len(contexts)
            arm = bandit.select_action(contexts[t])[0]
            reward = rounds.shared_rewards[t][arm]
            bandit.update_params(arm, reward, contexts[t])
            earned += reward
        return earned

    tell("obp", play, rounds.shared_rewards)


if __name__ == "__main__":
    main()
