"""Discord, by its gateway and REST API over `aiohttp`: `wire` its JSON, `api` requests, `stream` what comes in.

No library of its own: docs/opinions.md says why.
"""
