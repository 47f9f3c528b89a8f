"""Views, copies and joins of tensors."""
