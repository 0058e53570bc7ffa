"""python -m paper.baselines"""

from paper.baselines.command import main

main()
