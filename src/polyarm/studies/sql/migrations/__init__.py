"""How the tables of a storage came about, one step per file of `versions`."""
