"""`python -m polyarm`."""

from polyarm.cli.main import main

main()
