"""Support for other libraries' arrays; each module is imported separately."""
