"""Timings and comparisons; see the Makefile."""
