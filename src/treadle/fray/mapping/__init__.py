"""What `job_map` is made of: the order of units, batches, losses, and the budget of workers."""
