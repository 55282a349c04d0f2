"""Reward families: what the library must know about a reward's distribution.

A family supplies six kernels, all taking a `Family` record first: `divergence`, `confidence_ends`,
`alternative_cost`, `write_nearest_alternative`, `sample_reward` and, through `Family.scale`, its noise scale
per arm. `families.family` picks the right one by the record's `kind`; a new family is one new module and
one line in each of its branches.
"""
