"""Loads, stores, shuffles and register transposes in LLVM IR."""
