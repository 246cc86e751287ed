"""What the user demands, as a condition on calls: how it is written, read, tried and said."""
