"""A benchmark of our own writing in the form of tau2-bench: hotels, and a line on which the guest has a switch."""
