"""Guidance without a model: claims with their counts and the ids of their calls, put into words last."""
