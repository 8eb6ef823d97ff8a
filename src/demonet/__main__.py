"""``python -m demonet``: the command line."""

from demonet.cli import main

main()
