"""Tests of the operator on a real Kubernetes API server."""
