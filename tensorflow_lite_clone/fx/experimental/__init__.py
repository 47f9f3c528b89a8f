"""``torch.fx.experimental``: transformations of graphs, and tracing into aten's operations."""
