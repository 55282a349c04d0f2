"""Reward families: what the library must know about a reward's distribution.

`families.family` holds the `Family` record and six kernels that take it first: `divergence`, `confidence_ends`,
`alternative_cost`, `write_nearest_alternative`, `linearise_move` and `sample_reward`. They pick the right code by the
record's `kind`; `Family.scale` is the sub-Gaussian scale per arm. Bounded rewards use the Gaussian kernels; families
whose variance depends on the mean share `families.curved`. To add such a family, write one module with its divergence,
confidence ends and shift, and one line in each branch.
"""
