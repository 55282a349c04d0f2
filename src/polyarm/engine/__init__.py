"""Drivers of the compiled step: bulk simulation (`run`) and ask/tell (`session`)."""
