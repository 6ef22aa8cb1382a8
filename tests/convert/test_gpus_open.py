"""Settings of GPUs that are taken and can mean nothing."""

import pytest

from admitter.convert.gpus import InvalidGpuSettingError, parse_settings


@pytest.mark.parametrize("text", ["not a name=8", "amd.com/gpu =8", "-x", "a/b/c"])
def test_a_setting_for_what_can_be_no_resource_is_refused(text: str) -> None:
    with pytest.raises(InvalidGpuSettingError):
        parse_settings(32, [text])
