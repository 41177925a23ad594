"""How fast Baton is: each figure beside its floor, taken in the same run. `python -m bench`; docs/performance.md."""
