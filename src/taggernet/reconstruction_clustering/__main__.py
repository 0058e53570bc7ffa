"""python -m taggernet.reconstruction_clustering"""

from taggernet.reconstruction_clustering.command import main

main()
