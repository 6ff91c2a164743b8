"""What scores mean: likelihood ratios, error rates, and the operating point that makes them answers."""
