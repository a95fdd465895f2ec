"""Sexton: a Kubernetes operator that launches a Job at every fire of a Schedule, exactly once."""

__version__ = "0.1.0"
