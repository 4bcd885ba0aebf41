"""Run soak lanes one after the other, and publish what they counted.

python -m tests.soak [--seed N] [NAME…]

Each runs for SOAK_SECONDS (else for the time it asks for) and goes on where it was stopped; the counts are kept in
SOAK_STATE (out/soak). With `--seed` one round is played again, as it was when it failed.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys

from .lanes import Lane, Record, lanes, load, run, table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the lanes to run (all)")
    parser.add_argument("--seed", type=int, help="play this round of one lane again, and count nothing")
    asked, known = parser.parse_args(), lanes()
    if unknown := set(asked.names) - set(known):
        parser.error(f"there is no lane {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    logging.disable(logging.WARNING)  # stores that are upgraded, mended and restored say so by the thousand
    given, records = os.environ.get("SOAK_SECONDS"), list[tuple[Lane, Record]]()
    for name in asked.names or known:
        lane = known[name]
        seconds = float(given) if given else lane.seconds
        print(f"{name}: {lane.promise} ({seconds:.0f} s, from round {load(lane).seed})", flush=True)
        records.append((lane, run(lane, seconds, seed=asked.seed)))
    print(table(records))
    return int(any(record.failures for _, record in records))


if __name__ == "__main__":
    sys.exit(main())
