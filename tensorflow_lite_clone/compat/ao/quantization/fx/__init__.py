"""``torch.ao.quantization.fx``: graphs with quantized numbers, of which an operation is here."""
