"""Public benchmarks, played by their own packages in virtual environments of their own, by the agents of rollouts."""
