"""When to stop: thresholds for the test statistic."""
