"""Routines that move runs, rows, tiles and segments."""
