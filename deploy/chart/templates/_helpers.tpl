{{/*
In which version the policies of kind MutatingAdmissionPolicy are part of it, or nothing at all.
Servers know the kind since 1.36, and as v1beta1 since 1.34 if it is turned on; on others the controller alone suspends queued
Jobs, a moment later. Rendered without a server, the version is that of Helm's own libraries and says nothing: APIService is a
kind that only servers have.
*/}}
{{- define "admitter.mutatingPolicies" -}}
{{- $server := .Capabilities.APIVersions.Has "apiregistration.k8s.io/v1/APIService" -}}
{{- if not (and $server (semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version)) -}}
admissionregistration.k8s.io/v1
{{- else if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy" -}}
admissionregistration.k8s.io/v1beta1
{{- end -}}
{{- end -}}

{{/* Metadata of what is for monitoring. Takes the name and the labels that were asked for. */}}
{{- define "admitter.monitoringMetadata" -}}
metadata:
  name: {{ .name }}
  namespace: admitter-system
  labels:
    {{- mergeOverwrite (dict "app.kubernetes.io/part-of" "admitter") .labels | toYaml | nindent 4 }}
{{- end -}}
