"""Sexton as people meet it: installed by Helm into a cluster in which everything is real."""
