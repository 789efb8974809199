"""Stacks and parameters to checked runs, stored or recorded."""
