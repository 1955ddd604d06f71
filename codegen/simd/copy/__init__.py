"""Routines that move runs, rows and tiles."""
