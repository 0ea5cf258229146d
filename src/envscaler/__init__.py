"""envscaler: from plain task texts to executable environments, scenarios, trajectories and training rows."""
