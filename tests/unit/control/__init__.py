"""Tests of `sexton.control` against an API server that is a dictionary. No I/O."""
