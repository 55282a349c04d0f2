"""Tables, pictures and HTML of answers and runs, made from plain data."""
