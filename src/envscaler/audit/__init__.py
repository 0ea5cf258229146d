"""Audits libraries without a model, and explains single rewards."""
