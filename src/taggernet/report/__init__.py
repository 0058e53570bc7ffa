"""What is shown of a model: figures, and how it behaves beyond the setting it was trained in.

``report.generalisation`` and ``report.animation`` hold a function of their own name.
"""

from taggernet.report.charts import generalisation_figure
from taggernet.report.figures import figure4, grouping_figure, worst_scenes_figure

__all__ = ["figure4", "generalisation_figure", "grouping_figure", "worst_scenes_figure"]
