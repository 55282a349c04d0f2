"""Das and Basu, "Learning to Explore with Lagrangians for Bandits under Unknown Constraints", AISTATS 2026."""
