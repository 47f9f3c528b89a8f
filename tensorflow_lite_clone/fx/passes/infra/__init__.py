"""``torch.fx.passes.infra``: what passes are, how they are run, and which nodes go together."""
