"""A benchmark of our own writing in the form of tau-bench: two shops for tea, and people who want some."""
