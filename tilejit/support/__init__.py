"""Helpers of every package: tokens of text, stack levels of callers, masked arrays."""
