"""`python -m unmet` is the `unmet` command."""

from unmet.cli import main

main()
