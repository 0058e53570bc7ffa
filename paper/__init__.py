"""The paper's experiments: its tables and figures, the baselines, and the making of the shipped models.

Run from a clone of the repository: ``python -m paper table1|table2|figure4|figure5``. Not installed.
"""
