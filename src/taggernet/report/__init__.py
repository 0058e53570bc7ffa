"""What is shown of a model: figures, and how it behaves beyond the setting it was trained in."""
