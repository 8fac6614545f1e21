{{/* Parts of the pod: arguments, mounts and volumes. */}}

{{/* Where the certificate comes from: the sources that are set, joined with a comma. */}}
{{- define "navicert.certificateSources" -}}
{{- $sources := list -}}
{{- with .Values.certificate -}}
{{-   if .secretName }}{{ $sources = append $sources "certificate.secretName" }}{{ end -}}
{{-   if .certManager.issuerRef.name }}{{ $sources = append $sources "certificate.certManager.issuerRef.name" }}{{ end -}}
{{-   if .podCertificate.signerName }}{{ $sources = append $sources "certificate.podCertificate.signerName" }}{{ end -}}
{{- end -}}
{{- join ", " $sources -}}
{{- end }}

{{/* Where the webhook's client certificate authority comes from, likewise. */}}
{{- define "navicert.clientCASources" -}}
{{- $sources := list -}}
{{- if eq .Values.server "webhook" -}}
{{-   with .Values.webhook.clientCA -}}
{{-     if .secretName }}{{ $sources = append $sources "webhook.clientCA.secretName" }}{{ end -}}
{{-     if .configMapName }}{{ $sources = append $sources "webhook.clientCA.configMapName" }}{{ end -}}
{{-     if .clusterTrustBundle.signerName }}{{ $sources = append $sources "webhook.clientCA.clusterTrustBundle.signerName" }}{{ end -}}
{{-     if .clusterTrustBundle.name }}{{ $sources = append $sources "webhook.clientCA.clusterTrustBundle.name" }}{{ end -}}
{{-   end -}}
{{- end -}}
{{- join ", " $sources -}}
{{- end }}

{{/* Whether the pod talks to the API server with its service account's token: "true" or "". */}}
{{- define "navicert.usesServiceAccountToken" -}}
{{- if and (eq .Values.server "proxy") (not .Values.proxy.kubeconfig.secretName) }}true{{ end -}}
{{- end }}

{{/* Arguments of the container, without extraArgs. */}}
{{- define "navicert.arguments" -}}
- serve
- {{ .Values.server }}
- --listen=:{{ .Values.port }}
- --health-listen=:{{ .Values.healthPort }}
- --authentication-config=/etc/navicert/authentication/authentication-config.yaml
- --navicert-config=/etc/navicert/authentication/navicert.yaml
{{- if .Values.certificate.podCertificate.signerName }}
- --tls-cert-file=/etc/navicert/tls/bundle.pem
- --tls-private-key-file=/etc/navicert/tls/bundle.pem
{{- else }}
- --tls-cert-file=/etc/navicert/tls/tls.crt
- --tls-private-key-file=/etc/navicert/tls/tls.key
{{- end }}
{{- if eq .Values.server "proxy" }}
{{-   with .Values.proxy.kubeconfig }}
{{-     if .secretName }}
- --kubeconfig=/etc/navicert/kubeconfig/{{ .key }}
{{-       with .context }}
- {{ printf "--context=%s" . | quote }}
{{-       end }}
{{-     end }}
{{-   end }}
{{- else }}
{{-   if include "navicert.clientCASources" . }}
- --client-ca-file=/etc/navicert/client-ca/ca.crt
{{-     range .Values.webhook.clientAllowedNames }}
- {{ printf "--client-allowed-names=%s" . | quote }}
{{-     end }}
{{-   end }}
{{-   if .Values.webhook.bearerToken.secretName }}
- --bearer-token-file=/etc/navicert/bearer-token/token
{{-   end }}
{{-   if .Values.webhook.allowAnyCaller }}
- --allow-any-caller
{{-   end }}
{{-   range .Values.webhook.apiAudiences }}
- {{ printf "--api-audiences=%s" . | quote }}
{{-   end }}
{{- end }}
{{- if .Values.auditLog }}
- --audit-log-path=-
{{- end }}
- --log-level={{ .Values.log.level }}
- --log-format={{ .Values.log.format }}
# Load balancers need a moment to notice that a pod is going.
- --shutdown-delay={{ .Values.shutdown.delay }}
- --shutdown-grace={{ .Values.shutdown.grace }}
{{- end }}

{{- define "navicert.volumeMounts" -}}
# Whole directories, never `subPath`: those are not updated while the pod runs.
- name: authentication
  mountPath: /etc/navicert/authentication
  readOnly: true
{{- if .Values.revocations.enabled }}
- name: revocations
  mountPath: /etc/navicert/revocations
  readOnly: true
{{- end }}
- name: tls
  mountPath: /etc/navicert/tls
  readOnly: true
{{- if and (eq .Values.server "proxy") .Values.proxy.kubeconfig.secretName }}
- name: kubeconfig
  mountPath: /etc/navicert/kubeconfig
  readOnly: true
{{- end }}
{{- if include "navicert.clientCASources" . }}
- name: client-ca
  mountPath: /etc/navicert/client-ca
  readOnly: true
{{- end }}
{{- if and (eq .Values.server "webhook") .Values.webhook.bearerToken.secretName }}
- name: bearer-token
  mountPath: /etc/navicert/bearer-token
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "navicert.volumes" -}}
- name: authentication
  configMap:
    name: {{ include "navicert.configMapName" . }}
{{- if .Values.revocations.enabled }}
- name: revocations
  configMap:
    name: {{ include "navicert.revocationsConfigMapName" . }}
{{- end }}
{{- if and (eq .Values.server "proxy") .Values.proxy.kubeconfig.secretName }}
- name: kubeconfig
  secret:
    secretName: {{ .Values.proxy.kubeconfig.secretName }}
    defaultMode: 0440
{{- end }}
{{- if include "navicert.clientCASources" . }}
{{ include "navicert.clientCAVolume" . }}
{{- end }}
{{- if and (eq .Values.server "webhook") .Values.webhook.bearerToken.secretName }}
- name: bearer-token
  secret:
    secretName: {{ .Values.webhook.bearerToken.secretName }}
    defaultMode: 0440
    items:
      - key: {{ .Values.webhook.bearerToken.key }}
        path: token
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{ include "navicert.tlsVolume" . }}
{{- end }}

{{- define "navicert.clientCAVolume" -}}
- name: client-ca
{{- with .Values.webhook.clientCA }}
{{- if .secretName }}
  secret:
    secretName: {{ .secretName }}
    items:
      - key: {{ .key }}
        path: ca.crt
{{- else if .configMapName }}
  configMap:
    name: {{ .configMapName }}
    items:
      - key: {{ .key }}
        path: ca.crt
{{- else }}
  projected:
    sources:
      - clusterTrustBundle:
          {{- if .clusterTrustBundle.name }}
          name: {{ .clusterTrustBundle.name }}
          {{- else }}
          signerName: {{ .clusterTrustBundle.signerName }}
          labelSelector: {{ toJson .clusterTrustBundle.labelSelector }}
          {{- end }}
          path: ca.crt
{{- end }}
{{- end }}
{{- end }}

{{- define "navicert.tlsVolume" -}}
- name: tls
{{- with .Values.certificate.podCertificate }}
{{- if .signerName }}
  projected:
    defaultMode: 0440
    sources:
      - podCertificate:
          signerName: {{ .signerName }}
          keyType: {{ .keyType }}
          credentialBundlePath: bundle.pem
          {{- with .maxExpirationSeconds }}
          maxExpirationSeconds: {{ int . }}
          {{- end }}
          {{- with .userAnnotations }}
          userAnnotations:
            {{- toYaml . | nindent 12 }}
          {{- end }}
{{- else }}
  secret:
    secretName: {{ include "navicert.certificateSecretName" $ }}
    defaultMode: 0440
{{- end }}
{{- end }}
{{- end }}
