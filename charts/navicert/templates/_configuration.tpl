{{/* The two configuration files, and what follows from them. */}}

{{/* The AuthenticationConfiguration, with the fields that identify an object or an issuer first. */}}
{{- define "navicert.authenticationConfiguration" -}}
{{- $configuration := .Values.authenticationConfiguration -}}
apiVersion: {{ $configuration.apiVersion }}
kind: {{ $configuration.kind }}
{{- with $configuration.anonymous }}
anonymous:
  {{- toYaml . | nindent 2 }}
{{- end }}
jwt:
{{- range $configuration.jwt }}
  - issuer:
      {{- toYaml .issuer | nindent 6 }}
    {{- omit . "issuer" | toYaml | nindent 4 }}
{{- end }}
{{- end }}

{{/* The NavicertConfiguration with the path of the revocation list. */}}
{{- define "navicert.navicertConfiguration" -}}
{{- $configuration := deepCopy .Values.navicertConfiguration -}}
{{- if and .Values.revocations.enabled (not $configuration.revocationList) -}}
{{- $_ := set $configuration "revocationList" "/etc/navicert/revocations/revocations.yaml" -}}
{{- end -}}
apiVersion: {{ $configuration.apiVersion }}
kind: {{ $configuration.kind }}
{{- with omit $configuration "apiVersion" "kind" }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A checksum of the settings that servers read only at their start; empty if there are none. Everything else is reloaded, and a
     restart would end every watch. */}}
{{- define "navicert.restartChecksum" -}}
{{- $settings := pick .Values.navicertConfiguration "servers" "egress" -}}
{{- with .Values.authenticationConfiguration.anonymous -}}
{{- $settings = set $settings "anonymous" . -}}
{{- end -}}
{{- if and $settings (not .Values.existingConfigMap) -}}
{{- toJson $settings | sha256sum -}}
{{- end -}}
{{- end }}

{{/* Settings of the proxy in the NavicertConfiguration. */}}
{{- define "navicert.proxySettings" -}}
{{- dig "proxy" dict (.Values.navicertConfiguration.servers | default dict) | default dict | toYaml -}}
{{- end }}

{{/* Which parts of an identity the issuers map beside the user name: `groups` and `uid` as "true" or "", `extra` as sorted keys. */}}
{{- define "navicert.mappedAttributes" -}}
{{- $groups := "" -}}
{{- $uid := "" -}}
{{- $extra := list -}}
{{- range .Values.authenticationConfiguration.jwt -}}
{{-   $mappings := .claimMappings | default dict -}}
{{-   $mappedGroups := $mappings.groups | default dict -}}
{{-   $mappedUid := $mappings.uid | default dict -}}
{{-   if or $mappedGroups.claim $mappedGroups.expression }}{{ $groups = "true" }}{{ end -}}
{{-   if or $mappedUid.claim $mappedUid.expression }}{{ $uid = "true" }}{{ end -}}
{{-   range $mappings.extra }}{{ $extra = append $extra .key }}{{ end -}}
{{-   $extra = append $extra "authentication.kubernetes.io/credential-id" -}}
{{- end -}}
{{- dict "groups" $groups "uid" $uid "extra" ($extra | uniq | sortAlpha) | toYaml -}}
{{- end }}
