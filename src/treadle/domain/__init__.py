"""Pure functions of rows: tokens, registries, mapping, sums, vectors, clusters, topics. No I/O."""
