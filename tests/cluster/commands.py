"""`admitter` as an administrator types it, on a cluster of the tests."""

from tests.commands import Ended, admitter


def installs(kubeconfig: object, *options: str) -> Ended:
    """Install Admitter without its Deployment, in this process; that it can't is a failure."""
    done = admitter("install", "--without-deployment", f"--kubeconfig={kubeconfig}", *options)
    assert done.returncode == 0, done.stderr
    return done
