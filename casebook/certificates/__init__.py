"""The second case's experiments: what loading certificates costs, and what became of a cure."""
