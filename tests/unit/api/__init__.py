"""Tests of the custom resources' models, rules and CRDs. No I/O beyond reading `crds/`."""
