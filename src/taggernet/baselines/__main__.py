"""python -m taggernet.baselines"""

from taggernet.baselines.command import main

main()
