"""`python -m tilejit`: the command line, also where the script `tilejit` is not on the path."""

from tilejit.cli import main

if __name__ == "__main__":
    main()
