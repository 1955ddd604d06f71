"""Shared by every package: errors, settings, locks, caches, and facts about Python and the CPU."""
