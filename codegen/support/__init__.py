"""What every package uses: errors, settings, locks, caches, and facts about the Python and the CPU."""
