"""Telegram, by its Bot API over `aiohttp`: `wire` its JSON, `api` requests and errors, `reading` what comes in.

No library of its own: docs/opinions.md says why.
"""
