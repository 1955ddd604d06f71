"""The searches of the algebra: complements, inverses, longest runs, and composition that carries."""
