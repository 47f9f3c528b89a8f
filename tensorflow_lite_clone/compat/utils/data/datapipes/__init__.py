"""``torch.utils.data.datapipes``: pipelines of data are left out, a class of them is named."""
