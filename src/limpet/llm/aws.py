"""Credentials, region and signature of requests to AWS, by `botocore` (extra `bedrock`), imported when used."""

# botocore comes without types, and is not always there
# pyright: reportMissingTypeStubs=false, reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from limpet.errors import ConfigError, CredentialError

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from botocore.session import Session

_HOST = re.compile(r"https?://[a-z-]+\.([a-z]{2}(?:-[a-z]+)+-\d+)\.(?:api\.)?(?:amazonaws|aws)\b")
INSTALL = "Install it with: pip install 'limpet[bedrock]'. Or set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key."
NO_CREDENTIALS = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, log in with `aws sso login`, or set "
    "AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key."
)


class Signer:
    """Signs requests (Signature Version 4) with what the usual chain finds: environment, profile, SSO, instance role.

    The chain may read files and ask servers, so it runs on a thread; it renews what expires by itself.
    """

    def __init__(self, provider: str, *, service: str = "bedrock", region: str = "") -> None:
        self._provider = provider
        self._service = service
        self._region = region
        self._session: Session | None = None
        self._credentials: Credentials | None = None

    async def headers(self, url: str, body: Sequence[bytes]) -> dict[str, str]:
        """The headers that sign a POST of `body` to `url`. Raises `ConfigError` without botocore, `CredentialError`."""
        digest = hashlib.sha256()
        for part in body:
            digest.update(part)
        return await asyncio.to_thread(self._sign, url, digest.hexdigest())

    async def region(self) -> str:
        """The region of the environment or of the profile, else us-east-1."""
        named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")  # known without botocore
        return self._region or named or await asyncio.to_thread(self._configured)

    def _opened(self) -> Session:
        if self._session is None:
            try:
                from botocore.session import Session
            except ImportError as error:
                raise ConfigError("Amazon Bedrock needs the package botocore", hint=INSTALL) from error
            self._session = Session()
        return self._session

    def _configured(self) -> str:
        region: object = self._opened().get_config_variable("region")
        self._region = str(region or "us-east-1")
        return self._region

    def _sign(self, url: str, digest: str) -> dict[str, str]:
        session = self._opened()
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError

        try:
            if self._credentials is None:
                self._credentials = session.get_credentials()
            if self._credentials is None:
                raise CredentialError("no AWS credentials were found", provider=self._provider, hint=NO_CREDENTIALS)
            frozen = self._credentials.get_frozen_credentials()
        except BotoCoreError as error:
            what = f"the AWS credentials cannot be used: {error}"
            raise CredentialError(what, provider=self._provider, hint=NO_CREDENTIALS) from error
        found = _HOST.match(url)
        headers = {"Content-Type": "application/json", "X-Amz-Content-SHA256": digest}
        request = AWSRequest(method="POST", url=url, headers=headers)
        SigV4Auth(frozen, self._service, found[1] if found else self._configured()).add_auth(request)
        return {name: str(value) for name, value in request.headers.items()}
