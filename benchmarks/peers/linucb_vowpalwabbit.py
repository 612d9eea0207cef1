"""Vowpal Wabbit has no LinUCB; RegCB is its policy that plays the highest upper bound.

Features are numbered apart for every arm, so that the coefficients are disjoint. The lines of text
that it reads are made beforehand, and parsed once a round: the quickest way that we found.
"""

from harness import N_FEATURES, Rounds, tell
from vowpalwabbit import Workspace

OPTIONS = (
    "--cb_explore_adf --regcbopt --mellowness 0.1 --cb_min_cost -0.8 --cb_max_cost 0.3 "
    "--noconstant --quiet"
)


def lines(rows: list[list[float]]) -> list[str]:
    return [
        "|x " + " ".join(f"{arm * N_FEATURES + k}:{value}" for k, value in enumerate(row))
        for arm, row in enumerate(rows)
    ]


def main() -> None:
    rounds = Rounds()
    texts = [lines(rows) for rows in rounds.contexts]
    workspace = Workspace(OPTIONS)

    def play(number: int) -> float:
        earned = 0.0
        for t in range(number):
            t %= len(texts)
            examples = workspace.parse(texts[t])
            probabilities = workspace.predict(examples)
            probability = max(probabilities)
            arm = probabilities.index(probability)
            reward = rounds.rewards[t][arm]
            examples[arm].set_label_string(f"0:{-reward}:{probability}")
            workspace.learn(examples)
            workspace.finish_example(examples)
            earned += reward
        return earned

    tell("vowpalwabbit", play, rounds.rewards)


if __name__ == "__main__":
    main()
