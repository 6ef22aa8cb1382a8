"""The fields of objects that an admission is written into, where these are not the templates (`Injection`).

Next: `admitter.cache.injected` reads them, `admitter.policy.injection` writes them, and policies of
`admitter.kinds.growth` keep all others from doing so.
"""

from typing import Final

RUNTIME_PATCHES: Final = ("spec", "runtimePatches")
"""The list of patches of a TrainJob."""
COMPONENTS: Final = ("spec", "components")
"""The list of components of an AppWrapper."""
POD_SET_INFOS: Final = "podSetInfos"
"""The field of a component with what its pod templates get."""
