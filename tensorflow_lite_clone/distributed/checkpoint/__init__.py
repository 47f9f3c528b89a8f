"""Files that several processes write together, as ``torch.distributed.checkpoint``: none here."""
