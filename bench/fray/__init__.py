"""What a job and a unit of `job_map` cost, beside what else runs them."""
