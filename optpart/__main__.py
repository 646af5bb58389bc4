"""``python -m optpart`` is the command line."""

from optpart.cli import main

if __name__ == "__main__":
    main()
