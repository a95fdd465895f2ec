"""The whole control stack on a virtual clock, over an API server in memory, against a model of the rules."""
