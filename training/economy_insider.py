"""What is an insider's knowledge worth in heron/Economy-v0? Prints a table; about 20 s.

    python training/economy_insider.py [number of seeds]

The first country sees the others and the central bank at four levels, the others see what everybody may. All follow
the rule that uses whatever it is shown, and every level meets the same seeds.
"""

import sys

from heron_env.worlds.economy import WORLD, advantage

SEEDS = 40


def main(number: int) -> None:
    """Print mean returns and paired differences with their 95 % intervals."""
    print(f"Return of country_1 in percent of growth per episode, {number} seeds, mean [95 % interval]")
    print(f"{'view':<20}{'return':>24}{'minus external, paired':>28}")
    for view, (mean, difference) in advantage(range(number), WORLD).items():
        print(f"{view:<20}{mean!s:>24}{'' if view == 'external' else str(difference):>28}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
