"""Many explorations: simulations over seeds and what they show."""
