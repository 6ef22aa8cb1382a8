"""The made-up cluster's teams: Cohorts, ClusterQueues, namespaces, and what Jobs they submit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from admitter.web.demo.hardware import GPU

Json = dict[str, Any]

COHORTS: Final = {
    "perception": "research",
    "foundation": "research",
    "customers": "product",
    "operations": "product",
}
"""The Cohorts of the queues, and the one above each: two trees."""
BROKEN: Final = "edge"
"""A ClusterQueue that does not work: its flavor does not exist."""
IDLE: Final = "idle"
"""A ClusterQueue without a share of its own: it uses what others leave."""
STUDENTS: Final = "student-projects"
"""A namespace with an elastic quota."""
TENANT: Final = "vision-research"
"""The namespace of the tenant that one can look as."""
PRIORITIES: Final = {"urgent": 1000, "production": 500, "preemptible": -100}


@dataclass(frozen=True, slots=True)
class Work:
    """Jobs that are alike. `{n}` in the name is a number, `{w}` a word."""

    name: str
    often: float  # in comparison with the other work of the team
    minutes: float  # the median of the runtimes, which are log-normal
    sizes: tuple[tuple[int, int], ...]  # pods, and GPUs of each; or cores, if it uses no GPU
    flavor: str = ""  # the hardware that it insists on; empty: any that its queue has
    spread: float = 0.6  # of the logarithm of the runtime
    priority: str = ""
    expected: bool = False  # whether its users say how long it runs
    gpu: bool = True
    memory: int = 4  # GiB a core, where it uses no GPU


@dataclass(frozen=True, slots=True)
class Team:
    """A ClusterQueue, its namespaces and its work."""

    name: str
    cohort: str
    gpus: Mapping[str, tuple[int, int | None]]  # by flavor: `min` and `max`
    cores: int
    users: tuple[str, ...]
    work: Mapping[str, tuple[Work, ...]]  # by what follows the team's name in the namespace's
    waiting: int  # how many of its Jobs wait as a rule
    demand: float = 1.0  # what it submits, in comparison with its quota
    phase: float = 0.0  # when in a cycle of some hours it submits most, 0 to 1
    rules: Json = field(default_factory=dict)  # further parts of its ClusterQueue's spec


_SMALL: Final = ((1, 1), (1, 1), (1, 2), (1, 4))
_SOME: Final = ((1, 4), (1, 8), (1, 8), (2, 8))
_LARGE: Final = ((2, 8), (4, 8), (4, 8), (8, 8))
_RECLAIMS: Final = {"reclaimWithinCohort": "Any", "minRuntime": "30m"}

TEAMS: Final = (
    Team(
        "vision",
        "perception",
        {"h100": (64, 128), "a100": (128, None), "t4": (32, 32)},
        300,
        ("mara", "jonas", "wei", "sofia"),
        {
            "research": (
                Work("vit-l16-{w}-{n}", 3, 70, _SOME, expected=True),
                Work("detr-ablation-{n}", 4, 65, _SMALL),
                Work("diffusion-{w}-{n}", 1, 90, _LARGE, "h100", priority="preemptible"),
            ),
            "prod": (
                Work("label-refresh-{n}", 2, 60, _SMALL, "t4", priority="production"),
                Work("resize-images-{n}", 1.5, 60, ((2, 16), (4, 16)), gpu=False),
            ),
        },
        70,
        1.1,
        0.0,
        {"preemption": {**_RECLAIMS, "gracePeriod": "2m"}},
    ),
    Team(
        "language",
        "foundation",
        {"h100": (224, 320), "a100": (96, None)},
        200,
        ("amir", "chen", "lucia", "tom", "yuki"),
        {
            "pretrain": (
                Work("llm-7b-{w}-{n}", 1.2, 160, _LARGE, "h100", priority="production", expected=True),
                Work("tokenizer-{n}", 1, 45, ((4, 8), (8, 8)), gpu=False),
            ),
            "eval": (
                Work("eval-{w}-{n}", 5, 40, _SMALL, expected=True),
                Work("sft-{w}-{n}", 3, 55, _SOME),
                Work("reward-model-{n}", 1, 80, _SOME, "h100"),
            ),
        },
        90,
        1.25,
        0.3,
        {"preemption": {"withinClusterQueue": "LowerPriority", "minRuntime": "30m", "gracePeriod": "5m"}},
    ),
    Team(
        "speech",
        "perception",
        {"h100": (32, None), "a100": (64, None), "t4": (24, 24)},
        150,
        ("nadia", "oscar", "priya"),
        {
            "research": (
                Work("asr-conformer-{w}-{n}", 3, 65, _SOME, expected=True),
                Work("tts-vocoder-{n}", 3, 60, _SMALL),
            ),
            "data": (Work("align-audio-{n}", 2, 50, ((4, 8), (4, 16)), gpu=False),),
        },
        35,
        0.95,
        0.6,
        {"preemption": _RECLAIMS},
    ),
    Team(
        "robotics",
        "foundation",
        {"h100": (16, 48), "a100": (64, None), "t4": (64, 64)},
        700,
        ("elena", "kofi", "ravi"),
        {
            "sim": (
                Work("rollout-{w}-{n}", 4, 60, ((4, 8), (8, 8), (16, 8)), gpu=False),
                Work("policy-train-{n}", 3, 70, _SMALL, expected=True),
            ),
            "research": (Work("world-model-{w}-{n}", 1.5, 120, _SOME),),
        },
        40,
        0.9,
        0.8,
        {"preemption": {"minRuntime": "20m"}, "namespaceOrdering": "WeightedShare"},
    ),
    Team(
        "search",
        "customers",
        {"h100": (32, None), "a100": (64, None), "t4": (48, 64)},
        400,
        ("ines", "marco", "li"),
        {
            "ranking": (
                Work("ranker-{w}-{n}", 3, 60, _SMALL, priority="production"),
                Work("embed-corpus-{n}", 2, 60, ((4, 1), (8, 1), (4, 2)), "t4"),
            ),
            "index": (Work("index-shard-{n}", 4, 55, ((4, 16), (4, 8)), gpu=False),),
        },
        45,
        1.05,
        0.45,
        {"preemption": {**_RECLAIMS, "gracePeriod": "1m"}},
    ),
    Team(
        "recommend",
        "customers",
        {"h100": (48, None), "a100": (112, None)},
        500,
        ("bea", "hugo", "sana", "viktor"),
        {
            "train": (
                Work("two-tower-{w}-{n}", 3, 75, _SOME, expected=True),
                Work("feature-join-{n}", 3, 65, ((4, 16), (8, 8)), gpu=False, memory=3),
            ),
            "experiments": (Work("ab-{w}-{n}", 4, 60, _SMALL, priority="preemptible"),),
        },
        60,
        1.15,
        0.2,
        {"preemption": {**_RECLAIMS, "gracePeriod": "3m"}},
    ),
    Team(
        "fraud",
        "operations",
        {"a100": (40, None), "t4": (40, 40)},
        400,
        ("gabi", "noah"),
        {
            "models": (Work("graph-net-{w}-{n}", 3, 60, _SMALL, priority="production"),),
            "backtests": (Work("backtest-{n}", 5, 60, ((4, 8), (2, 16)), gpu=False),),
        },
        30,
        1.0,
        0.7,
        {"queueingStrategy": "StrictFIFO"},
    ),
    Team(
        "data-platform",
        "operations",
        {"t4": (16, 16)},
        900,
        ("rosa", "emil"),
        {
            "batch": (
                Work("etl-{w}-{n}", 4, 55, ((4, 8), (8, 8)), gpu=False, priority="production"),
                Work("compact-{n}", 3, 80, ((2, 16), (4, 16)), gpu=False, memory=3),
            ),
            "adhoc": (Work("notebook-{w}-{n}", 2, 50, ((1, 1),), "t4", priority="preemptible"),),
        },
        30,
        0.95,
        0.1,
        {"preemption": {"minRuntime": "20m"}},
    ),
)

STUDENT_WORK: Final = Work("homework-{w}-{n}", 1, 35, ((1, 1), (1, 1), (2, 1)), "t4")
STUDENT_USERS: Final = ("anna", "ben", "carla", "dmitri")
STUDENT_GPUS: Final = (12, 24)
STUDENT_QUEUE: Final = f"eq_{STUDENTS}_students"
WORDS: Final = (
    *("base", "large", "warmup", "lr3e4", "cosine", "bf16", "noaug", "mix", "seed", "crop", "long", "v2"),
    *(
        "retry",
        "clean",
        "fewshot",
        "frozen",
        "wide",
        "deep",
        "delta",
        "nightly",
        "eu",
        "en-de",
        "hard",
        "tiny",
    ),
)


def namespaces(team: Team) -> list[str]:
    return [f"{team.name}-{part}" for part in team.work]


def definitions() -> Iterator[Json]:
    """Cohorts, queues, priorities and the elastic quota."""
    for name, value in PRIORITIES.items():
        yield {"kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    spare = [{"name": GPU, "flavors": [_quota("h100", 32, None)]}]
    yield _object("Cohort", "research", {"resources": spare})
    yield _object("Cohort", "product", {"lifecycle": {"maxRuntime": "12h"}})
    for name, parent in COHORTS.items():
        yield _object("Cohort", name, {"parent": parent})
    for team in TEAMS:
        yield from _queue(team)
    broken = {"cohort": "operations", "namespaceSelector": {}, "resources": [_of_gpus({"l4": (16, None)})]}
    yield _object("ClusterQueue", BROKEN, broken)
    yield from _namespace("edge-inference", BROKEN)
    idle = {"cohort": "operations", "namespaceSelector": {}, "resources": [_of_gpus({"t4": (0, None)})]}
    yield _object("ClusterQueue", IDLE, idle)
    yield from _namespace("idle-sweeps", IDLE)
    yield {"kind": "Namespace", "metadata": {"name": STUDENTS}}
    least, most = STUDENT_GPUS
    share = {"min": {GPU: str(least)}, "max": {GPU: str(most)}, "flavors": ["t4"]}
    yield {"kind": "ElasticQuota", "metadata": {"name": "students", "namespace": STUDENTS}, "spec": share}


def _queue(team: Team) -> Iterator[Json]:
    cores = [_quota("cpu", team.cores, None)]
    memory = [{"name": "cpu", "quota": {"min": f"{4 * team.cores}Gi"}}]
    spec: Json = {
        "cohort": team.cohort,
        "namespaceSelector": {},
        "resources": [
            _of_gpus(team.gpus),
            {"name": "cpu", "flavors": cores},
            {"name": "memory", "flavors": memory},
        ],
        "lifecycle": {"readyTimeout": "10m", "backoff": {"base": "5m", "factor": 2, "max": "1h"}},
        **team.rules,
    }
    yield _object("ClusterQueue", team.name, spec)
    for name in namespaces(team):
        yield from _namespace(name, team.name)


def _namespace(name: str, queue: str) -> Iterator[Json]:
    yield {"kind": "Namespace", "metadata": {"name": name}}
    made = {"name": "main", "namespace": name}
    yield {"kind": "LocalQueue", "metadata": made, "spec": {"clusterQueue": queue}}


def _object(kind: str, name: str, spec: Json) -> Json:
    return {"kind": kind, "metadata": {"name": name}, "spec": spec}


def _of_gpus(gpus: Mapping[str, tuple[int, int | None]]) -> Json:
    return {"name": GPU, "flavors": [_quota(flavor, *quota) for flavor, quota in gpus.items()]}


def _quota(flavor: str, least: int, most: int | None) -> Json:
    return {"name": flavor, "quota": {"min": str(least)} | ({"max": str(most)} if most is not None else {})}
