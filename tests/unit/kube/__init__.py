"""Tests of sexton.kube."""
