"""Arrays of other libraries; import the module you need, none is imported here."""
