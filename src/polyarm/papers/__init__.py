"""Evaluations of published papers, recomputed."""
