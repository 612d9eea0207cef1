"""river: LinUCBDisjoint, a Bayesian linear regression per arm; contexts are dicts."""

from harness import N_ARMS, Rounds, tell
from river.bandit import LinUCBDisjoint


def main() -> None:
    rounds = Rounds()
    contexts = [dict(enumerate(x)) for x in rounds.shared]
    arms = list(range(N_ARMS))
    bandit = LinUCBDisjoint(alpha=1.0, beta=100.0, seed=1)  # beta: one over the noise squared

    def play(number: int) -> float:
        earned = 0.0
        for t in range(number):
            t %= len(contexts)
            arm = bandit.pull(arms, context=contexts[t])
            reward = rounds.shared_rewards[t][arm]
            bandit.update(arm, contexts[t], reward)
            earned += reward
        return earned

    tell("river", play, rounds.shared_rewards)


if __name__ == "__main__":
    main()
