"""The roles of the paper: prompt files, typed inputs and replies, and `ask`."""
