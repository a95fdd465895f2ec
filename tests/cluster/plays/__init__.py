"""Things that go wrong, each played in a world of its own, all of them at the same time."""
