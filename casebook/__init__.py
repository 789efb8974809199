"""The instruments of the book: stacks, a lab server, probes, runs, claims and charts."""
