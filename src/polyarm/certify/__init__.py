"""Being right: evidence, the search for a witness against an answer, thresholds, and what statistics prove."""
