"""Layouts in the formats and libraries of others; import the module you need, none is imported here."""
