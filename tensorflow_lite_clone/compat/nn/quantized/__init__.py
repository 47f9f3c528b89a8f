"""The older name of `ao.nn.quantized`."""
