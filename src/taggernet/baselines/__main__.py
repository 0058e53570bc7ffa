"""python -m taggernet.baselines"""

from taggernet.baselines.row import main

main()
