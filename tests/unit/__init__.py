"""Tests without input or output."""
