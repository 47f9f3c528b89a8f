"""``torch.utils.data.datapipes.iter``."""
