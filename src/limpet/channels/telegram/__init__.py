"""Telegram, by its Bot API over `aiohttp`: `wire` its JSON, `api` requests and errors, `reading` what comes in.

No library of its own: those that there are cost 0.8 to 3 s of CPU at import, confirm updates before we have stored
them, and hide whether a request that failed was sent (docs/opinions.md).
"""
