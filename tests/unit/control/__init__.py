"""Tests of sexton.control."""
