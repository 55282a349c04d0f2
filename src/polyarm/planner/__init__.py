"""Plans: what a plan is worth, how to improve it, and when its answer will be proved."""
