"""What runs in the virtual environment of a benchmark: nothing else of this package can be imported there."""
