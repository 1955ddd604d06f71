"""The searches behind the algebra: complements, inverses, longest runs, and compositions with carries."""
