"""What runs in the sandbox's own processes: the zygote and the workers forked from it.

These modules import the standard library, msgspec and each other, plus `envscaler.canonical` and `envscaler.errors`:
a zygote that loads more starts slower and makes every worker bigger.
"""
