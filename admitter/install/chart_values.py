"""The lines of manifests that the chart has values for, and the template of each."""

from typing import Final

from admitter import __version__

Replacement = tuple[str, str]
"""What stands in a manifest, once, and the template of it."""


def _with(text: str, added: str) -> Replacement:
    """What stands in a manifest stays, and more of the template follows it."""
    return text, text + added


def _placed(account: str, values: str) -> Replacement:
    """Where pods may run: below their account, by the values of that name."""
    line = f"      serviceAccountName: {account}\n"
    lists = "".join(
        f"""\
      {{{{- with {source} }}}}
      {key}:
        {{{{- toYaml . | nindent 8 }}}}
      {{{{- end }}}}
"""
        for key, source in (
            ("imagePullSecrets", ".Values.image.pullSecrets"),
            *((key, f"{values}.{key}") for key in ("nodeSelector", "tolerations", "affinity")),
        )
    )
    return _with(line, lists)


_API_SERVER_PORTS: Final[Replacement] = (
    """\
        - protocol: TCP
          port: 443
        - protocol: TCP
          port: 6443
        - protocol: TCP
          port: 8443
        - protocol: TCP
          port: 16443
""",
    """\
        {{- range .Values.apiServerPorts }}
        - protocol: TCP
          port: {{ . }}
        {{- end }}
""",
)
_CHECKSUM: Final[Replacement] = _with(
    """\
  template:
    metadata:
""",
    """\
      {{- with .Values.configuration }}
      annotations: # another configuration, other pods: it is read at the start only
        checksum/configuration: {{ toJson . | sha256sum }}
      {{- end }}
""",
)
_IMAGE: Final[Replacement] = (
    f"          image: admitter:{__version__}\n",
    """\
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
          {{- with .Values.image.pullPolicy }}
          imagePullPolicy: {{ . }}
          {{- end }}
""",
)


def _resources(limit: str, values: str) -> Replacement:
    """What the container may use: of memory at most so much, and what the values of that name say."""
    line = f"            limits:\n              memory: {limit}\n"
    requests = "            requests:\n              cpu: 100m\n              memory: 256Mi\n"
    return requests + line, f"            {{{{- toYaml {values}.resources | nindent 12 }}}}\n"


_CONTROLLER: Final[tuple[Replacement, ...]] = (
    ("  # docs/configuration.md. What is changed here stays when Admitter is installed again.\n", ""),
    _with(
        "    bind: 0.0.0.0:8080\n",
        """\
    {{- with .Values.configuration }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
""",
    ),
    _API_SERVER_PORTS,
    ("  replicas: 2\n", "  replicas: {{ .Values.replicas }}\n"),
    _CHECKSUM,
    _placed("admitter-controller", ".Values"),
    _IMAGE,
    _resources("1Gi # docs/performance.md: 501 MB with 100,000 Jobs", ".Values"),
    _with(
        """\
              mountPath: /etc/admitter
              readOnly: true
""",
        """\
            {{- with .Values.configuration.journal }}
            - name: journal
              mountPath: {{ .folder | quote }}
            {{- end }}
""",
    ),
    _with(
        """\
          configMap:
            name: admitter-controller
""",
        """\
        {{- if .Values.configuration.journal }}
        - name: journal
          emptyDir: {}
        {{- end }}
""",
    ),
)

_WEB: Final[tuple[Replacement, ...]] = (
    (
        "# The page of docs/web.md, for kubectl apply -f deploy/web.yaml, after Admitter is installed.\n",
        "# The page of docs/web.md.\n",
    ),
    ("      port: 80\n", "      port: {{ .Values.web.port }}\n"),
    (
        "--config, /etc/admitter/config.yaml]\n",
        (
            "--config, /etc/admitter/config.yaml"
            "{{ range .Values.web.hosts }}, --allow-host, {{ quote . }}{{ end }}]\n"
        ),
    ),
    (
        "  replicas: 1 # sessions are in its memory: a user logged in at one replica is not at another\n",
        "  replicas: {{ .Values.web.replicas }}\n",
    ),
    (
        """\
spec:
  selector:
    app.kubernetes.io/name: admitter-web
""",
        """\
spec:
  {{- if gt (int .Values.web.replicas) 1 }}
  sessionAffinity: ClientIP # sessions are in its memory: a user logged in at one replica is not at another
  {{- end }}
  selector:
    app.kubernetes.io/name: admitter-web
""",
    ),
    _API_SERVER_PORTS,
    _CHECKSUM,
    _placed("admitter-web", ".Values.web"),
    _IMAGE,
    _resources("1Gi", ".Values.web"),
    _with(
        "  replicas: {{ .Values.web.replicas }}\n",
        """\
  {{- if .Values.web.historyClaim }}
  strategy: # a claim may be for one node, and its file is for one pod
    type: Recreate
  {{- end }}
""",
    ),
    (
        """\
          emptyDir:
            sizeLimit: 512Mi
""",
        """\
          {{- if .Values.web.historyClaim }}
          persistentVolumeClaim:
            claimName: {{ quote .Values.web.historyClaim }}
          {{- else }}
          emptyDir:
            sizeLimit: 512Mi
          {{- end }}
""",
    ),
)

VALUES: Final = {"manifests/40-deployment.yaml": _CONTROLLER, "deploy/web.yaml": _WEB}
"""By file: what stands there, and what gives the same with the default values."""
