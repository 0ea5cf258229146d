"""A benchmark of our own writing with the entry points of BFCL's package: lamps of one house, and no more."""
