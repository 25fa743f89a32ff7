"""I/O: thin, one outside each, behind small protocols."""
