"""Generators and random tensors."""
