"""python -m taggernet.reconstruction_clustering"""

from taggernet.reconstruction_clustering.row import main

main()
