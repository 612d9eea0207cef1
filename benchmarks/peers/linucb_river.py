"""river: LinUCBDisjoint with one context for all arms, as a dict of features."""

from harness import N_ARMS, Rounds, tell
from river.bandit import LinUCBDisjoint


def main() -> None:
    rounds = Rounds()
    contexts = [dict(enumerate(x)) for x in rounds.shared]
    arms = list(range(N_ARMS))
    bandit = LinUCBDisjoint(alpha=1.0, beta=1.0, seed=1)

    def play(number: int) -> None:
        for t in range(number):
            t %= len(contexts)
            arm = bandit.pull(arms, context=contexts[t])
            bandit.update(arm, contexts[t], rounds.shared_rewards[t][arm])

    tell("river", play)


if __name__ == "__main__":
    main()
