"""The staged scaffold: an environment designed by small questions, with all that code can make made by code.

For weak models: names first, then fields, then tools, each from a schema that leaves little to get wrong; ids,
references, signatures, the state class and the frame of a state are no model's business.

Source: ours; the paper (3.2) asks for whole plans.
"""
