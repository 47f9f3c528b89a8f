"""Functions of neural networks."""
