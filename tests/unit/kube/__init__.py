"""Tests of `sexton.kube`. No I/O."""
