"""The user as which the controller calls the API server: its installed account.

The policies let only that account write admissions. A controller that an administrator starts by hand
impersonates it; where the caller may not, the controller ends before it starts, with the remedy.
"""

from typing import Final

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_exponential

from admitter.client.errors import ApiError, ConfigurationError, NotFoundError, is_retryable
from admitter.client.transport import Transport
from admitter.names import CONTROLLER_USER, NAMESPACE, SERVICE_ACCOUNT

ACCOUNT_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{SERVICE_ACCOUNT}"
_REVIEW: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_ACCESS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
LONGEST_PAUSE_SECONDS: Final = 5.0

log = structlog.get_logger(__name__)


async def controller_account(transport: Transport) -> str:
    """The account to impersonate; empty: the caller is that account. Waits for an API server that is down.

    Raises:
        ConfigurationError: Admitter is not installed, or the caller may not impersonate its account.
        ClusterError: the API server refuses to name the caller.
    """

    def tell(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        log.warning("the API server does not name the caller", error=str(error))

    waits = wait_exponential(max=LONGEST_PAUSE_SECONDS)
    again = retry_if_exception(is_retryable)
    retrying = AsyncRetrying(wait=waits, retry=again, before_sleep=tell, reraise=True)
    account: str = await retrying(account_to_impersonate, transport)
    return account


async def user_of(transport: Transport) -> str:
    """The user that the API server takes the caller for."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    review = await transport.create(_REVIEW, body)
    return str(review["status"]["userInfo"].get("username", ""))


async def account_to_impersonate(transport: Transport) -> str:
    """The installed account if the caller is another user; empty: the caller is that account.

    Raises:
        ConfigurationError: Admitter is not installed, or the caller may not impersonate its account.
    """
    caller = await user_of(transport)
    if caller == CONTROLLER_USER:
        return ""
    if not await _is_installed(transport):
        raise ConfigurationError(
            f"namespace {NAMESPACE} has no service account {SERVICE_ACCOUNT}, under which the controller "
            "runs: run admitter install --without-deployment first"
        )
    if not await _may_impersonate(transport):
        raise ConfigurationError(
            f"{caller} is not the controller's account {CONTROLLER_USER} and may not impersonate it, so "
            "policies would refuse every admission: use a kubeconfig with a token of that account (kubectl "
            f"create token {SERVICE_ACCOUNT} --namespace {NAMESPACE}), or let an administrator start it"
        )
    return CONTROLLER_USER


async def _is_installed(transport: Transport) -> bool:
    """Whether the account exists; a caller that may not look is not stopped by that."""
    try:
        await transport.get(ACCOUNT_PATH)
    except ApiError as error:
        return not isinstance(error, NotFoundError)
    return True


async def _may_impersonate(transport: Transport) -> bool:
    account = {"resource": "serviceaccounts", "namespace": NAMESPACE, "name": SERVICE_ACCOUNT}
    spec = {"resourceAttributes": {"verb": "impersonate", **account}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    review = await transport.create(_ACCESS, body)
    return bool(review["status"].get("allowed"))
