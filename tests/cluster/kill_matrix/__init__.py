"""Every write of an operator interrupted in turn, and an account taken of what became of it."""
