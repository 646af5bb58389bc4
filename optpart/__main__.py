"""``python -m optpart`` and the script ``optpart`` are the command line."""

import os
import sys


def main() -> None:
    """Run the command line; an interrupt while it loads ends it as a later one does."""
    # For every Python that this process starts, or has started by a library.
    os.environ["PYTHONSAFEPATH"] = "1"
    # Matrices are small here: more threads to multiply them save no time, take memory in every
    # process, and are more than the workers that were asked for.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from optpart.base.interrupts import guard_interrupts
        from optpart.base.surroundings import ignore_settings_here

        guard_interrupts()
        ignore_settings_here()
        from optpart.base.clock import start
        from optpart.cli import main as run

        run(start())
    except KeyboardInterrupt:  # before or after the command line minds them itself
        sys.stderr.write("optpart: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    # ``python -m`` puts the current folder before all that is installed. What Python itself has
    # imported until here may come from there; the script ``optpart`` begins without it.
    if not sys.flags.safe_path:
        del sys.path[0]
    main()
