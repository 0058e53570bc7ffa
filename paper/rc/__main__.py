"""python -m paper.rc"""

from paper.rc.command import main

main()
