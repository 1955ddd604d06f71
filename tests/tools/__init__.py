"""Programs and definitions that tests use: oracles, guard pages, the soak, replay, mutants."""
