"""E-mail, by `aioimaplib` and `aiosmtplib` (extra `email`): `mailbox` what comes in, `outgoing` what goes out.

`reading` takes mails apart, `sender` says whether a person wrote one and who, `quoting` and `page` what of it is new.
"""
