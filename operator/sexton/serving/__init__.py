"""What the operator serves over HTTP."""
