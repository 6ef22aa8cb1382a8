"""The lines of manifests/40-deployment.yaml that the chart has values for, and the template of each."""

from typing import Final

from admitter import __version__

VALUES: Final = (
    (
        "  # docs/configuration.md. What is changed here stays when Admitter is installed again.\n",
        "",
    ),
    (
        "    bind: 0.0.0.0:8080\n",
        """\
    bind: 0.0.0.0:8080
    {{- with .Values.configuration }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
""",
    ),
    (
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
    ),
    (
        "  replicas: 2\n",
        "  replicas: {{ .Values.replicas }}\n",
    ),
    (
        """\
  template:
    metadata:
""",
        """\
  template:
    metadata:
      {{- with .Values.configuration }}
      annotations: # another configuration, other pods: it is read at the start only
        checksum/configuration: {{ toJson . | sha256sum }}
      {{- end }}
""",
    ),
    (
        "      serviceAccountName: admitter-controller\n",
        """\
      serviceAccountName: admitter-controller
      {{- with .Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
""",
    ),
    (
        f"          image: admitter:{__version__}\n",
        """\
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
          {{- with .Values.image.pullPolicy }}
          imagePullPolicy: {{ . }}
          {{- end }}
""",
    ),
    (
        """\
            requests:
              cpu: 100m
              memory: 256Mi
            limits:
              memory: 1Gi # docs/performance.md: 501 MB with 100,000 Jobs
""",
        "            {{- toYaml .Values.resources | nindent 12 }}\n",
    ),
    (
        """\
              mountPath: /etc/admitter
              readOnly: true
""",
        """\
              mountPath: /etc/admitter
              readOnly: true
            {{- with .Values.configuration.journal }}
            - name: journal
              mountPath: {{ .folder | quote }}
            {{- end }}
""",
    ),
    (
        """\
          configMap:
            name: admitter-controller
""",
        """\
          configMap:
            name: admitter-controller
        {{- if .Values.configuration.journal }}
        - name: journal
          emptyDir: {}
        {{- end }}
""",
    ),
)
"""What stands there, once, and what gives the same with the default values."""
