"""How much the property tests try: a sample, or more with `HYPOTHESIS_PROFILE` set to `full` or `explore`."""

import os

from hypothesis import HealthCheck, settings

# How long it takes to make examples says more of the machine than of a test.
SLOW = [HealthCheck.too_slow]

# These two try the same examples each time, so that a red run is about the change at hand.
settings.register_profile(
    "fast", max_examples=25, deadline=None, derandomize=True, suppress_health_check=SLOW
)
settings.register_profile(
    "full", max_examples=300, deadline=None, derandomize=True, suppress_health_check=SLOW
)
# This one looks for what nobody has found yet; what it finds becomes a test of its own.
settings.register_profile(
    "explore", max_examples=3000, deadline=None, print_blob=True, suppress_health_check=SLOW
)
pytest_plugins = ["cluster_tools.pytest_plugin", "tallies"]

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
