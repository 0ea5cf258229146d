"""Speed and memory, measured side by side in one run: `make perf`. Ratios count; absolute times are this machine's."""
