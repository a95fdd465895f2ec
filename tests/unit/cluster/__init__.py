"""Tests of what the tests on a cluster are built from. No I/O."""
