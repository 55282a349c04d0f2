"""Where observations come from in simulation: synthetic instances with known truth."""
