"""The command line in this process."""

from __future__ import annotations

from taggernet.cli import main


def status(command: str | list[str]) -> int:
    try:
        return main(command.split() if isinstance(command, str) else command)
    except SystemExit as end:
        return int(end.code or 0)


TOY = """--widths 24 16 8 --batch 10 --updates 6 --train 30 --valid 20 --test 20 --no-tensorboard --no-progress
    --device cpu --log-every 3 --evaluate-every 0 --checkpoint-every 0 --evaluation-batch 10 --test-iterations 2"""
"""Options that make a recipe quick."""
