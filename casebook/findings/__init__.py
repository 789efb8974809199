"""What the book states, and how it came out."""
