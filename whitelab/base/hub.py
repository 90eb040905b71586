"""Why the Hugging Face hub did not give what was asked of it, in words for models and data alike."""

import errno
import re

from whitelab.base.wording import duration, first_line

FULL = (errno.ENOSPC, errno.EDQUOT)  # of an OSError: a disk or somebody's share of it


def failure(error: BaseException | None) -> str:
    """What stopped a request to the hub, and what to do where that is the same whatever was asked for; one line."""
    import httpx2
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    hub = constants.ENDPOINT
    match error:
        case OfflineModeIsEnabled():
            return "HF_HUB_OFFLINE is set, so nothing is fetched: unset it"
        case HfHubHTTPError():
            return f"{hub} answered {error.response.status_code}{_meaning(error.response)}"
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return f"HF_ENDPOINT={hub} is no address of a hub"
        case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.ProxyError():
            return f"{hub} was not reached ({line(error)}): connect to the internet, set HF_ENDPOINT to a mirror"
        case httpx2.HTTPError():
            return f"the connection was cut ({line(error)}): try again"
    return line(error) if error else f"{hub} does not answer: connect to the internet"


def line(error: BaseException) -> str:
    """The first line of an error's text, without the number the system has for it."""
    return re.sub(r"\[Errno -?\d+\] ", "", first_line(error))[:200]


def _meaning(response) -> str:
    """What an HTTP status means for whoever asked."""
    from huggingface_hub.utils import parse_ratelimit_headers

    if response.status_code == 429:
        limit, after = parse_ratelimit_headers(response.headers), response.headers.get("Retry-After", "")
        seconds = limit.reset_in_seconds if limit and not limit.remaining else int(after) if after.isdigit() else None
        return f", too many requests: try again in {'a few minutes' if seconds is None else duration(seconds)}"
    fault = response.status_code >= 500
    return ", a fault of its own: try again in a few minutes" if fault else f" ({response.reason_phrase})"
