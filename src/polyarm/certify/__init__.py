"""Test statistics: how strongly the data reject every instance in which another mix is better."""
