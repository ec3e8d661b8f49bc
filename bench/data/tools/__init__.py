"""The tools, each with one function `run(case, corpus, out, **options)`; they import what they need in it."""
