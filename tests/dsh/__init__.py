"""The bundle on the real DSH, with a scripted model in place of a language model."""
