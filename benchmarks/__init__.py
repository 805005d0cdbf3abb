"""Benchmarks: suites, the runner and its reports, experiments, and speed measurements."""
