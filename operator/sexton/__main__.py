"""`python -m sexton`: the same as the `sexton` command."""

from sexton.cli.main import main

main()
