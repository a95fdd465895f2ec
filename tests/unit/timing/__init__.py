"""Tests of `sexton.timing`."""
