"""Being quick: what a plan is worth, how to improve it, and when it will be proved."""
