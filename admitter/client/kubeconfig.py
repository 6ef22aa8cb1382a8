"""The API server's address and the caller's credentials, from a kubeconfig or a pod's account.

In a module of its own since the library is slow to load, which only commands that ask a cluster have to pay.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

from kubernetes_asyncio import client, config
from kubernetes_asyncio.config.config_exception import ConfigException

from admitter.client.errors import ConfigurationError

Configuration = client.Configuration


async def read(
    kubeconfig: Path | None, context: str | None
) -> tuple[Configuration, asyncio.Task[None] | None]:
    """The configuration, and what keeps its token fresh, if that has to be done.

    By default the file is that of `KUBECONFIG`, `~/.kube/config`, or the pod's own account, and the context
    is its current one.

    Raises:
        ConfigurationError: there is no such file or context, or it can't be used.
    """
    if kubeconfig is not None and not kubeconfig.is_file():  # noqa: ASYNC240  # once, at the start
        raise ConfigurationError(f"no cluster to talk to: there is no file {kubeconfig}")
    settings = Configuration()
    in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ
    try:
        if kubeconfig is None and context is None and in_cluster:
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]  # the library leaves it untyped
            return settings, None
        loader = await config.load_kube_config(
            config_file=str(kubeconfig) if kubeconfig else None,
            context=context,
            client_configuration=settings,
            persist_config=False,
        )
    except (ConfigException, OSError, ValueError) as error:
        source = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        raise ConfigurationError(f"no cluster to talk to: {source}: {error}") from error
    refresh = config.refresh_token(loader, client_configuration=settings)
    return settings, asyncio.create_task(refresh, name="refresh-token")


def chosen(kubeconfig: Path | None, context: str | None) -> dict[str, Any]:
    """The context that counts, as a kubeconfig has it; empty where there is none, as in a pod."""
    try:
        contexts, current = config.list_kube_config_contexts(
            config_file=str(kubeconfig) if kubeconfig else None
        )
    except ConfigException:
        return {}
    return next((each for each in contexts if each["name"] == context), current) or {}
