"""``python -m optpart`` and the script ``optpart`` are the command line."""

import sys


def main() -> None:
    """Run the command line; an interrupt while it loads ends it as a later one does."""
    try:
        from optpart.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("optpart: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
