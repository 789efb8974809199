"""What only one of the three cases needs."""
