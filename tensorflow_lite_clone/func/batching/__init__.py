"""What `vmap` maps over: arrays of samples, their backend, its rules; see `backend`."""
