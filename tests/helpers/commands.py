"""The command line in this process."""

from __future__ import annotations

from taggernet.cli import main


def status(command: str | list[str]) -> int:
    try:
        return main(command.split() if isinstance(command, str) else command)
    except SystemExit as end:
        return int(end.code or 0)
