"""Environments as trainers take them: `gem` (also what ROLL plugs in), `gymnasium` and `trl`, each in its module.

Nothing is imported here, so that one trainer's package need not be there for another. Rows of training files are
`export`'s business.
"""
