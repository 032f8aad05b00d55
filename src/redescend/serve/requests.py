"""What every request passes: the token, the number of open requests, and a body that comes whole and in time."""

from __future__ import annotations

import asyncio
import hmac

from starlette.requests import Request

from redescend.serve.refusals import Refusal, TooLarge, TooSlow, Unauthorized
from redescend.serve.settings import Limits

PATIENCE = 8
"""How many times the largest body is read, and dropped, so that a client can read why it is refused."""


def check_token(authorization: str, token: str | None) -> None:
    """Raise unless the header of a request carries the token of the server."""
    if token is None:
        return
    kind, _, given = authorization.partition(" ")
    if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
        raise Unauthorized("The server needs a token: send it as 'Authorization: Bearer TOKEN'.")


async def read_body(request: Request, limits: Limits) -> bytes:
    """The body; raises if it is too large or too slow."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal("The body is compressed; send it as it is.")
    parts, size, more = [], 0, True
    try:
        async with asyncio.timeout(limits.seconds):
            while more and size <= PATIENCE * limits.body:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise Refusal("The connection was closed before the body was complete.")
                part, more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                if size <= limits.body:
                    parts.append(part)
    except TimeoutError:
        raise TooSlow(f"The body did not come within {limits.seconds:g} seconds.") from None
    if size > limits.body:
        raise TooLarge(f"The body has more than {limits.body} bytes, which is what the server takes.")
    return parts[0] if len(parts) == 1 else b"".join(parts)
