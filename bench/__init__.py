"""Measurements of Limpet: `python -m bench start|turn|history|size`. What they mean stands in docs/performance.md."""
