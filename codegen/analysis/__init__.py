"""Analyses that passes use: dependences, bounds, legality of vectorization, reductions, costs."""
