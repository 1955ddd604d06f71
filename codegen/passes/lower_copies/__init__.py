"""Copies to loops over super-vectors: one file for each kind of transfer."""
