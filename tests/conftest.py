"""How much the property tests try: a sample by default, everything with `HYPOTHESIS_PROFILE=full`."""

import os

from hypothesis import settings

# `fast` tries the same examples each time, so that a red run is about the change at hand.
settings.register_profile("fast", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("full", max_examples=300, deadline=None, print_blob=True)
pytest_plugins = ["cluster_tools.pytest_plugin", "unit.timing.tally"]

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
