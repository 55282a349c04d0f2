"""Claims that need thousands of runs."""
