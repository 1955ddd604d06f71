"""`python -m tilejit.cli`."""

from tilejit.cli import main

main()
