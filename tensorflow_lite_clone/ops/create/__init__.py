"""Making and converting tensors."""
