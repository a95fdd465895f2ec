"""Tests of what the operator serves."""
