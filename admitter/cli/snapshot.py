"""`admitter snapshot`: the cluster at one moment, as a file to look into elsewhere."""

import sys

from admitter.cli.looking import ConfigFile, look
from admitter.cli.options import Context, Kubeconfig
from admitter.insight.snapshot_file import dump


def snapshot(kubeconfig: Kubeconfig = None, context: Context = None, config: ConfigFile = None) -> None:
    """Write what decisions depend on to standard output, as JSON.

    That is queues, quota, flavors, nodes, Workloads, and of Jobs and pods what they request and which nodes
    they accept: no image, command, environment, volume, Secret or ConfigMap. admitter explain and
    admitter what-if read it with --state.

    Examples:
    - `admitter snapshot > monday.json`
    - `admitter snapshot --config admitter.yaml > monday.json`: of a controller with settings of its own
    """
    sys.stdout.buffer.write(dump(look(None, kubeconfig, context, config)))
