"""The named formats, one file for each family: data that the layouts and the copies read."""
