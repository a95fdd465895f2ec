"""A proxy between an operator and the API server that loses, delays and interrupts what it is told to."""
