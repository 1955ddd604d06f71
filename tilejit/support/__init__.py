"""What every package needs: tokens of texts, lines of callers, masked arrays."""
