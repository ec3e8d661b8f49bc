"""What `job_map` is made of; its docstring is the way through."""
