"""What is shown of answers and runs, laid out from plain data."""
