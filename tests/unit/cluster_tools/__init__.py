"""Tests of the local cluster's parts that need no cluster."""
