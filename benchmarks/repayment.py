"""True rewards on real applications: mortgages in Boston, with repayment simulated. From the root:

    python -m benchmarks.repayment [--replications 20] [--write]

In every round three applicants of a minority and three white ones are drawn from the data set
`mortgage`, and one gets the loan. The feedback is the lender's approval as it is in the data.
Repayment is simulated: with the probability at which a white applicant with the same file was
approved, and higher by an advantage for the minority. It becomes known every 500 rounds for a share
of the loans. `--write` puts the table into RESULTS.md.
"""

from __future__ import annotations

import argparse
from datetime import date

import numpy as np

import evenhand as eh
from benchmarks.mortgages import mortgages
from benchmarks.sections import put

ROUNDS, LATE = 2000, 500


def play(advantage: float, share: float, seed: int) -> tuple[float, float, float, float, bool]:
    """Regret in repayment, the minority's share, its bias, the real one, and if averages differ."""
    files, approved, white, _, fair = mortgages()
    gap = np.linalg.lstsq(files[~white], approved[~white], rcond=None)[0] - fair
    repays = np.clip(files @ fair + advantage * ~white, 0.0, 1.0)
    generator = np.random.default_rng(seed)
    groups = eh.Groups.per_round(6, {"race": ["minority", "white"]})
    policy = eh.PooledGroupFair(groups, 4, reference="white", arms="once", seed=seed)
    regret, taken, waiting = 0.0, 0, []
    for t in range(1, ROUNDS + 1):
        minority = generator.choice(np.flatnonzero(~white), 3, replace=False)
        slate = [*minority, *generator.choice(np.flatnonzero(white), 3, replace=False)]
        decision = policy.select(files[slate], groups=["minority"] * 3 + ["white"] * 3)
        chosen = slate[decision.arm]
        policy.update(decision, approved[chosen])
        regret += repays[slate].max() - repays[chosen]
        taken += not white[chosen]
        if generator.random() < share:
            waiting.append((decision, float(generator.random() < repays[chosen])))
        if t % LATE == 0 and waiting:
            policy.update([made for made, _ in waiting], true_reward=[z for _, z in waiting])
            waiting = []
    average = np.eye(4)[:1]
    bias = float(policy.bias().at(average).estimate[0])
    return regret / ROUNDS, taken / ROUNDS, bias, gap[0] - advantage, not policy.measured().equal


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.repayment", description=__doc__)
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    options = parser.parse_args(arguments)
    lines = [
        "| the minority repays | repayments known | regret | its share | bias | real | given up |",
        "|---|---|---|---|---|---|---|",
    ]
    for advantage in (0.0, 0.1):
        for share in (0.0, 0.2, 0.5, 1.0):
            runs = [play(advantage, share, seed) for seed in range(options.replications)]
            means, count = np.mean(runs, axis=0), np.sqrt(len(runs))
            error = np.std([run[0] for run in runs], ddof=1) / count
            words = f"more often by {advantage:g}" if advantage else "as often"
            lines.append(
                f"| {words} | {share:.0%} | {means[0]:.3f} ± {error:.3f} | {means[1]:.0%} "
                f"| {means[2]:.2f} | {means[3]:.2f} | {means[4]:.0%} |"
            )
            print(lines[-1], flush=True)
    if options.write:
        words = (
            "## True rewards on mortgage applications\n\n"
            f"{date.today()}, by `python -m benchmarks.repayment --replications "
            f"{options.replications} --write`: {ROUNDS:,} rounds; regret in repayments a round "
            "with its standard error, the share of loans to the minority, its bias at the average "
            "file, estimated and true, and how often equal averages were given up.\n\n"
        )
        put("repayment", words + "\n".join(lines))


if __name__ == "__main__":
    main()
