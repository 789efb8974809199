"""What only one of the cases needs, a folder for each."""
