"""`admitter run` and `admitter` with bad usage: one clear line."""

from pathlib import Path

import pytest
import yaml

from tests.commands import admitter


@pytest.mark.parametrize("bind", ["8080", ":8080", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000"])
def test_an_address_that_is_none(bind: str) -> None:
    answer = admitter("run", "--bind", bind)
    assert answer.returncode == 2
    assert f"'{bind}' is not ADDRESS:PORT" in " ".join(answer.stderr.replace("│", "").split())


@pytest.mark.parametrize("command", ["run", "install", "uninstall"])
def test_a_kubeconfig_that_is_missing(command: str, tmp_path: Path) -> None:
    answer = admitter(command, "--kubeconfig", str(tmp_path / "none"))
    assert answer.returncode == 1
    assert answer.stderr == f"error: no cluster to talk to: there is no file {tmp_path}/none\n"


def test_a_context_that_is_missing(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    empty = {"apiVersion": "v1", "kind": "Config", "clusters": [], "contexts": [], "users": []}
    kubeconfig.write_text(yaml.safe_dump(empty))
    answer = admitter("install", "--kubeconfig", str(kubeconfig), "--context", "none")
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"error: no cluster to talk to: {kubeconfig}: ")
    assert "none" in answer.stderr


@pytest.mark.parametrize("options", [[], ["--print"]])
def test_an_image_without_a_deployment(options: list[str]) -> None:
    answer = admitter("install", "--image", "example.com/a:1", "--without-deployment", *options)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "--image and --without-deployment exclude each other" in answer.stderr
