"""Tests of `sexton.deciding`: tables of single decisions, and random histories driven through all of it. No I/O."""
