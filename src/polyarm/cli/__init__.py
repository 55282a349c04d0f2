"""The command line. Commands import what they need when they run: `--help` loads neither NumPy nor Numba."""
