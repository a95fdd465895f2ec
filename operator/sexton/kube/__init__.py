"""The one door to the API server: requests, list and watch, and the clock that both sides must agree on."""
