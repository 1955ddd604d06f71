"""Passes: pure functions from form to form, and the helpers that they share."""
