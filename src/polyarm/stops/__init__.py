"""When to stop: the certified stop, its forms that plan, and the test of the paper's explorers."""
