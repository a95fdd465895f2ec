"""Benchmarks: what the budgets in the design are measured with."""
