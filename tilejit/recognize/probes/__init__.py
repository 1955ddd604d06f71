"""The layout of what a function packs, from what it does to arrays of known elements."""
