"""What is shown of a model: figures, and how it behaves beyond the setting it was trained in.

``report.generalisation``, ``report.animation``, ``report.figure5`` and ``report.table2`` hold a function of their own
name; ``report.reproduce`` is the way from data to a finished table or figure.
"""

from taggernet.report.charts import generalisation_figure
from taggernet.report.figures import figure4, grouping_figure, worst_scenes_figure

__all__ = ["figure4", "generalisation_figure", "grouping_figure", "worst_scenes_figure"]
