"""Words without arrays: dtypes and promotion, device names, errors, shape arithmetic."""
