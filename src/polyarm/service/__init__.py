"""Studies over HTTP: an API for programs, a dashboard for people."""
