"""Policies of the API server, made from a JobKind: what those for Jobs do, for its objects.

Three are for the objects of the kind, as manifests/30, 31, 36 and 37 are for Jobs, and one for their scale.
One is for the objects that its operator makes for them, and one for those that describe their pods.
"""

import json
from collections.abc import Collection, Iterator
from typing import Final

from admitter.api.job_kind import Group, JobKind
from admitter.kinds.growth import ANNOTATIONS, LABELS, PodSetRules, optional, steps
from admitter.kinds.paths import Json
from admitter.names import (
    BY_DEFAULT_ANNOTATION,
    CONTROLLER_USER,
    DEFAULT_QUEUE_LABEL,
    ELASTIC_QUOTA_QUEUE,
    GROUP,
    JOB_KIND_LABEL,
    KIND_POLICY,
    MANAGED_LABEL,
    OPERATE_VERB,
    QUEUE_LABEL,
    SUBMIT_VERB,
    SUSPEND_IGNORED_ANNOTATION,
)


def _added(part: str, name: str, value: str) -> str:
    """The patch that adds a label or an annotation."""
    place = f"/metadata/{part}/{name.replace('/', '~1')}"
    return (
        f"object.metadata.?{part}.hasValue() ? [JSONPatch{{op: 'add', path: '{place}', value: {value}}}] "
        f": [JSONPatch{{op: 'add', path: '/metadata/{part}', value: {{'{name}': {value}}}}}]"
    )


ADMISSION: Final = "admissionregistration.k8s.io/v1"
_OPERATIONS: Final = ["CREATE", "UPDATE"]
_NOT_THE_CONTROLLER: Final[Json] = {
    "name": "not-by-the-controller",
    "expression": f"request.userInfo.username != '{CONTROLLER_USER}'",
}
_OPERATED: Final = (
    "object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && "
    f"authorizer.group('{GROUP}').resource('jobkinds').name(o.kind + '.' + o.apiVersion.split('/')[0])"
    f".check('{OPERATE_VERB}').allowed())"
)
"""The object belongs to one of a described kind, and the request is one of that kind's operator."""
_IGNORED: Final = f"object.metadata.?annotations[?'{SUSPEND_IGNORED_ANNOTATION}'].orValue('')"
_MANAGED: Final = f"namespaceObject.metadata.?labels[?'{MANAGED_LABEL}'].orValue('') == 'true'"
_VERSION: Final = "string(oldObject.metadata.resourceVersion)"
_NOTE: Final = f"({_added('annotations', SUSPEND_IGNORED_ANNOTATION, _VERSION)})"
"""Note on an object that a change of the field that stops it had no effect: a warning follows from it."""
_GARBAGE_COLLECTORS: Final = (
    "['system:serviceaccount:kube-system:generic-garbage-collector', 'system:kube-controller-manager']"
)

_NOT_A_USERS: Final = (
    f"the labels {' and '.join(LABELS)} and the annotations {', '.join(ANNOTATIONS)} "
    "are put into pod templates by Admitter's controller alone"
)


def policies(kind: JobKind, kinds: Collection[JobKind]) -> Iterator[Json]:
    """The policies of a JobKind that compiles, each with its binding; none for Jobs, which have their own.

    `kinds` are all that are known: objects within objects have their templates where these say.
    """
    resource, name = kind.spec.resource, f"{KIND_POLICY}{kind.metadata.name}"
    if is_job(resource):
        return
    own = _rule(resource.group, resource.version, resource.plural)
    yield from _bound("Mutating", kind, name, _mutating(kind, kinds), [own])
    yield from _bound("Validating", kind, name, _validating(kind, kinds), [own])
    yield from _bound("Mutating", kind, f"{name}-default-queue", _by_default(kind, kinds), [own])
    scale = _rule(resource.group, resource.version, f"{resource.plural}/scale")
    yield from _bound("Validating", kind, f"{name}-scale", _of_scale(kind), [scale])
    marked = PodSetRules(kind, kinds).marked_in_related()
    if marked != "false":
        versions = sorted({each.api_version.rpartition("/") for each in kind.spec.related})
        rules = [_rule(group, version, "*") for group, _, version in versions]
        yield from _bound("Validating", kind, f"{name}-related", _of_related(marked), rules)
    yield from _bound("Validating", kind, f"{name}-warnings", _warning(kind, kinds), [own], action="Warn")
    if kind.spec.children:
        groups = sorted({each.group for each in kind.spec.children})
        rules = [_rule(group, "*", "*") for group in groups]
        yield from _bound("Validating", kind, f"{name}-children", _of_children(kind), rules)


def is_job(resource: Group) -> bool:
    """Whether a resource is the Job of Kubernetes, which has its own rights and policies."""
    return (resource.group, resource.kind) == ("batch", "Job")


def operated(resource: Group) -> str:
    """The name by which a role makes an account the operator of a kind."""
    return f"{resource.kind}.{resource.group}"


def _rule(group: str, version: str, plural: str) -> Json:
    found = {"apiGroups": [group], "apiVersions": [version], "resources": [plural]}
    return {**found, "operations": _OPERATIONS}


def _bound(
    sort: str, kind: JobKind, name: str, spec: Json, rules: list[Json], action: str = "Deny"
) -> Iterator[Json]:
    labels = {"app.kubernetes.io/part-of": "admitter", JOB_KIND_LABEL: kind.metadata.name}
    head = {"apiVersion": ADMISSION, "metadata": {"name": name, "labels": labels}}
    actions = {"validationActions": [action]} if sort == "Validating" else {}
    spec = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": rules}, **spec}
    yield {**head, "kind": f"{sort}AdmissionPolicy", "spec": spec}
    yield {**head, "kind": f"{sort}AdmissionPolicyBinding", "spec": {"policyName": name, **actions}}


def _mutating(kind: JobKind, kinds: Collection[JobKind]) -> Json:
    """An object that names a queue is stopped when it is made; the field is the controller's from then on.

    A child is counted with its owner: its operator may start it, once that owner was admitted.
    """
    stopped = _literal(kind.spec.suspend.stopped)
    now, was = _suspension(kind, "object"), _suspension(kind, "oldObject")
    queued = f"object.metadata.?labels[?'{QUEUE_LABEL}'].hasValue()"
    before = f"request.operation == 'UPDATE' && {_of_old(queued)}"
    wanted = f"({before} ? {was} : {stopped})"
    counted = f"({now} == {stopped} || {PodSetRules(kind, kinds).marked('object')})"
    conditions = {
        "queued-now-or-before": f"{queued} || {before}",
        "suspend-differs": f"{now} != {wanted}",
        "not-a-counted-child": f"!({counted} && {_OPERATED})",
    }
    patch = _patch(steps(kind.spec.suspend.path), wanted)
    patch = f"({patch}) + ({before} ? {_NOTE} : [])"
    return {
        "reinvocationPolicy": "IfNeeded",
        "matchConditions": [_NOT_THE_CONTROLLER, *_conditions(conditions)],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }


def _by_default(kind: JobKind, kinds: Collection[JobKind]) -> Json:
    """An object that names no queue is queued in the default one of its namespace, as Jobs are.

    A change that takes the queue's name off has it put in its place. A child is counted with its owner.
    """
    resource, stopped = kind.spec.resource, _literal(kind.spec.suspend.stopped)
    unnamed = f"object.metadata.?labels[?'{QUEUE_LABEL}'].orValue('') == ''"
    counted = f"({_suspension(kind, 'object')} == {stopped} || {PodSetRules(kind, kinds).marked('object')})"
    conditions = {
        "names-no-queue": unnamed,
        "new-or-queued-before": f"request.operation == 'CREATE' || !({_of_old(unnamed)})",
        "not-being-deleted": "!object.metadata.?deletionTimestamp.hasValue()",
        "not-a-counted-child": f"!({counted} && {_OPERATED})",
    }
    queue = f"string(namespaceObject.metadata.?labels[?'{DEFAULT_QUEUE_LABEL}'].orValue(''))"
    label = _added("labels", QUEUE_LABEL, "variables.queue")
    mark = _added("annotations", BY_DEFAULT_ANNOTATION, "variables.queue")
    stop = _patch(steps(kind.spec.suspend.path), stopped)
    made = f"({mark}) + ({stop})"
    patch = f"variables.queue == '' ? [] : ({label}) + (request.operation == 'CREATE' ? {made} : [])"
    selector = {"matchExpressions": [{"key": DEFAULT_QUEUE_LABEL, "operator": "Exists"}]}
    rules = [_rule(resource.group, resource.version, resource.plural)]
    return {
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {"namespaceSelector": selector, "resourceRules": rules},
        "matchConditions": [_NOT_THE_CONTROLLER, *_conditions(conditions)],
        "variables": [{"name": "queue", "expression": queue}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }


def _validating(kind: JobKind, kinds: Collection[JobKind]) -> Json:
    """What was admitted does not grow, and what the controller has injected is its own."""
    rules, title = PodSetRules(kind, kinds), kind.spec.resource.kind
    stopped = _literal(kind.spec.suspend.stopped)
    queue = f"string(object.metadata.?labels[?'{QUEUE_LABEL}'].orValue(''))"
    variables = {
        "operated": _OPERATED,
        "queue": queue,
        "oldQueue": f"request.operation == 'UPDATE' ? {_of_old(queue)} : ''",
        "managed": _MANAGED,
        "stopped": f"{_suspension(kind, 'object')} == {stopped}",
        "ran": f"request.operation == 'UPDATE' && {_suspension(kind, 'oldObject')} != {stopped}",
        "marked": rules.marked("object"),
        "markedBefore": f"request.operation == 'UPDATE' && ({rules.marked('oldObject')})",
        "counts": (
            "variables.ran && (variables.oldQueue != '' || variables.markedBefore || variables.managed)"
        ),
        **rules.variables(),
    }
    kept = " && ".join(rules.marks_kept()) or "true"
    validations: list[Json] = []
    for words, expression in rules.rules():
        message = f"an admitted {title} uses the quota that it was given, so {words}"
        free = "!variables.counts || variables.operated"
        told = {"messageExpression": _with_remedy(message, title)}
        validations.append({"expression": f"{free} || {expression}", **told})
    marks = {
        "expression": f"variables.operated || !variables.marked || request.operation == 'UPDATE' && {kept}",
        "message": _NOT_A_USERS,
    }
    return {
        "matchConditions": [_NOT_THE_CONTROLLER],
        "variables": [{"name": name, "expression": each} for name, each in variables.items()],
        "validations": [*validations, marks, *_about_queues(title)],
    }


def _warning(kind: JobKind, kinds: Collection[JobKind]) -> Json:
    """What is taken, and probably not meant."""
    title, path = kind.spec.resource.kind, kind.spec.suspend.path
    what = f"{title.lower()}/' + object.metadata.name + ' -n ' + request.namespace"
    ignored = {
        "expression": f"request.operation == 'CREATE' || {_IGNORED} == {_of_old(_IGNORED)}",
        "messageExpression": (
            f"'{path} of a queued {title} is set by Admitter alone, and stays ' + "
            f"string({_suspension(kind, 'object')}) + ': it starts when its queue admits it. "
            f"To pause or resume it: admitter pause {what} + ', admitter resume {what}"
        ),
    }
    tiny = {
        "expression": f"!({PodSetRules(kind, kinds).tiny_memory()})",
        "message": (
            "a container requests less than one MiB of memory: a number without a unit is in bytes, "
            "and m is a thousandth; write 128Mi or 2Gi"
        ),
    }
    queued = {"queued": f"object.metadata.?labels[?'{QUEUE_LABEL}'].hasValue()"}
    return {
        "failurePolicy": "Ignore",
        "matchConditions": [_NOT_THE_CONTROLLER, *_conditions(queued)],
        "validations": [ignored, tiny],
    }


def _about_queues(title: str) -> Iterator[Json]:
    """Which queue an object may be in, and that it is in one where the namespace is managed."""
    counted = "variables.operated && (variables.stopped || variables.marked)"
    yield {
        "expression": (
            "!variables.ran || variables.oldQueue == '' || variables.operated "
            "|| variables.queue == variables.oldQueue"
        ),
        "messageExpression": _with_remedy(f"an admitted {title} stays in its queue", title),
    }
    yield {
        "expression": (
            "variables.operated || !variables.markedBefore || variables.oldQueue == '' "
            "|| variables.queue != ''"
        ),
        "message": (
            f"{title} objects that were admitted before stay in some queue, since their pods are counted: "
            "delete it and make another one"
        ),
    }
    yield {
        "expression": (
            "!variables.managed || variables.queue != '' || variables.operated "
            "|| request.operation == 'UPDATE' && variables.oldQueue == '' "
            "&& (variables.ran || variables.stopped)"
        ),
        "messageExpression": (
            f"'namespace ' + request.namespace + ' is managed: {title} objects there name their queue in "
            f"the label {QUEUE_LABEL}, stay in a queue, and do not start without'"
        ),
    }
    yield {
        "expression": (
            f"variables.queue in ['', '{ELASTIC_QUOTA_QUEUE}'] || {counted} "
            "|| request.operation == 'UPDATE' && variables.queue == variables.oldQueue "
            f"|| authorizer.group('{GROUP}').resource('localqueues').namespace(request.namespace)"
            f".name(variables.queue).check('{SUBMIT_VERB}').allowed()"
        ),
        "reason": "Forbidden",
        "messageExpression": (
            "'user ' + request.userInfo.username + ' may not submit to queue ' + variables.queue + "
            "' in namespace ' + request.namespace + ': ask an administrator for the verb submit on "
            "localqueues.admitter.dev, as the ClusterRole admitter-submitter gives it'"
        ),
    }


def _of_scale(kind: JobKind) -> Json:
    """Nothing grows by a Scale where everything is queued.

    A Scale has the number of pods and no label, so it can't be told whether its object is queued. Elsewhere
    the controller stops what has grown.
    """
    replicas, title = "object.?spec.?replicas.orValue(0)", kind.spec.resource.kind
    refusal = {
        "expression": f"!({_MANAGED}) || {replicas} <= {_of_old(replicas)}",
        "messageExpression": (
            f"'namespace ' + request.namespace + ' is managed: {title} objects there do not grow by their "
            f"scale, which does not tell their queue: change the {title} itself'"
        ),
    }
    return {"matchConditions": [_NOT_THE_CONTROLLER], "validations": [refusal]}


def _of_related(marked: str) -> Json:
    """What describes pods of a kind has nothing in its templates by which pods are counted."""
    unchanged = "request.operation == 'UPDATE' && dyn(object).?spec == dyn(oldObject).?spec"
    return {"validations": [{"expression": f"{unchanged} || !({marked})", "message": _NOT_A_USERS}]}


def _of_children(kind: JobKind) -> Json:
    """Only the operator makes and changes what belongs to an object of the kind."""
    resource, title = kind.spec.resource, kind.spec.resource.kind
    kinds = ", ".join(f"'{each.group}/{each.kind}'" for each in kind.spec.children)
    owners = (
        "object.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false) && "
        f"o.kind == '{title}' && o.apiVersion.startsWith('{resource.group}/'))"
    )
    unchanged = (
        "request.operation == 'UPDATE' && size(variables.owners) == size(variables.oldOwners) && "
        "variables.owners.all(o, variables.oldOwners.exists(b, b.uid == o.uid)) && "
        "object.?spec == oldObject.?spec"
    )
    allowed = (
        f"authorizer.group('{GROUP}').resource('jobkinds').name('{operated(resource)}')"
        f".check('{OPERATE_VERB}').allowed()"
    )
    conditions = {
        "of-a-kind-that-it-makes": f"(request.kind.group + '/' + request.kind.kind) in [{kinds}]",
        "not-by-the-garbage-collector": f"!(request.userInfo.username in {_GARBAGE_COLLECTORS})",
    }
    validation = {
        "expression": (
            f"size(variables.owners) + size(variables.oldOwners) == 0 || {unchanged} || {allowed}"
        ),
        "reason": "Forbidden",
        "messageExpression": (
            f"'what belongs to {title} objects is made and changed by their operator alone, and ' + "
            f"request.userInfo.username + ' is no operator of JobKind {kind.metadata.name}: "
            f"change the {title} instead'"
        ),
    }
    before = f"request.operation == 'UPDATE' ? {_of_old(owners)} : []"
    return {
        "matchConditions": [_NOT_THE_CONTROLLER, *_conditions(conditions)],
        "variables": [
            {"name": "owners", "expression": owners},
            {"name": "oldOwners", "expression": before},
        ],
        "validations": [validation],
    }


def _conditions(expressions: dict[str, str]) -> list[Json]:
    return [{"name": name, "expression": each} for name, each in expressions.items()]


def _of_old(expression: str) -> str:
    return expression.replace("object.", "oldObject.")


def _suspension(kind: JobKind, root: str) -> str:
    """The value of the field that stops an object, and that it has if it is missing."""
    suspend = kind.spec.suspend
    return f"{optional(root, steps(suspend.path))}.orValue({_literal(suspend.running)})"


def _with_remedy(words: str, title: str) -> str:
    """A refusal with what its user has to type."""
    what = f"{_literal(f' {title.lower()}/')} + object.metadata.name + ' -n ' + request.namespace"
    pause, resume = (
        _literal(f"{words}: admitter pause"),
        "', change it once it is stopped, then admitter resume'",
    )
    return f"{pause} + {what} + {resume} + {what} + '; or delete it and make it again'"


def _literal(value: bool | str) -> str:
    """A value as CEL writes it, which is how JSON does."""
    return json.dumps(value)


def _patch(path: tuple[str, ...], wanted: str) -> str:
    """The patch that sets a field, with what is missing above it."""
    made = ""
    for depth in range(1, len(path)):
        inner = wanted
        for name in reversed(path[depth:]):
            inner = f"{{'{name}': {inner}}}"
        place = "/".join(("", *path[:depth]))
        missing = f"!{optional('object', path[:depth])}.hasValue()"
        made += f"{missing} ? [JSONPatch{{op: 'add', path: '{place}', value: {inner}}}] : "
    place = "/".join(("", *path))
    return made + f"[JSONPatch{{op: 'add', path: '{place}', value: {wanted}}}]"
