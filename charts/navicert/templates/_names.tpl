{{/* Names, labels and the image. */}}

{{/* The name of the release's objects: release and server, with the chart's name between them unless the release has it. */}}
{{- define "navicert.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $release := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default (printf "%s-%s" $release .Values.server) .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- end }}

{{/* Labels by which the Deployment, the Services and the policies select pods. They never change. */}}
{{- define "navicert.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ .Values.server }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "navicert.labels" -}}
{{ include "navicert.selectorLabels" . }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Name, namespace and labels of an object with the release's name. */}}
{{- define "navicert.metadata" -}}
name: {{ include "navicert.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "navicert.labels" . | nindent 2 }}
{{- end }}

{{- define "navicert.serviceAccountName" -}}
{{- $default := ternary (include "navicert.fullname" .) "default" .Values.serviceAccount.create -}}
{{- default $default .Values.serviceAccount.name -}}
{{- end }}

{{- define "navicert.configMapName" -}}
{{- default (printf "%s-configuration" (include "navicert.fullname" .)) .Values.existingConfigMap -}}
{{- end }}

{{- define "navicert.revocationsConfigMapName" -}}
{{- default (printf "%s-revocations" (include "navicert.fullname" .)) .Values.revocations.existingConfigMap -}}
{{- end }}

{{/* The Secret that cert-manager writes, or the one that exists. */}}
{{- define "navicert.certificateSecretName" -}}
{{- default (printf "%s-tls" (include "navicert.fullname" .)) .Values.certificate.secretName -}}
{{- end }}

{{/* By digest if there is one, by tag if not. */}}
{{- define "navicert.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default .Chart.AppVersion $image.tag }}
{{- end -}}
{{- end }}
