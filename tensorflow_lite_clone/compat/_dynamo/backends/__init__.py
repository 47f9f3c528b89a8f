"""``torch._dynamo.backends``: what graphs are compiled with."""
