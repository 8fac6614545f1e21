{{/* What the schema of the values cannot say, or cannot say clearly. */}}
{{- define "navicert.checks" -}}
{{- $values := .Values -}}
{{- $sources := include "navicert.certificateSources" . -}}
{{- if not $sources -}}
{{-   fail "missing certificate: set one of certificate.secretName, certificate.certManager.issuerRef.name and certificate.podCertificate.signerName" -}}
{{- else if contains "," $sources -}}
{{-   fail (printf "certificate has more than one source: %s; set one of them" $sources) -}}
{{- end -}}
{{- if and $values.certificate.podCertificate.signerName (semverCompare "<1.37.0-0" .Capabilities.KubeVersion.Version) -}}
{{-   fail (printf "certificate.podCertificate needs Kubernetes 1.37 or later, not %s; `helm template` takes the version from --kube-version" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if not $values.existingConfigMap -}}
{{-   if not $values.authenticationConfiguration.jwt -}}
{{-     fail "missing issuer: set authenticationConfiguration.jwt, or existingConfigMap" -}}
{{-   end -}}
{{- else if and (eq $values.server "proxy") $values.rbac.create (not $values.rbac.rules) -}}
{{-   fail "existingConfigMap hides the configuration from the chart: set rbac.rules to the rules that `navicert serve proxy --print-rbac` prints for it, or rbac.create to false" -}}
{{- end -}}
{{- if eq $values.server "proxy" -}}
{{-   include "navicert.proxyChecks" . -}}
{{- else -}}
{{-   include "navicert.webhookChecks" . -}}
{{- end -}}
{{- if and $values.tlsRoute.enabled (not $values.tlsRoute.parentRefs) -}}
{{-   fail "missing tlsRoute.parentRefs: name the Gateway" -}}
{{- end -}}
{{- if and $values.tlsRoute.enabled (not $values.tlsRoute.hostnames) -}}
{{-   fail "missing tlsRoute.hostnames: a TLSRoute selects connections by server name" -}}
{{- end -}}
{{- with $values.podDisruptionBudget -}}
{{-   if and .enabled (eq (toString .minAvailable) "") (eq (toString .maxUnavailable) "") -}}
{{-     fail "missing podDisruptionBudget.minAvailable or podDisruptionBudget.maxUnavailable" -}}
{{-   end -}}
{{- end -}}
{{- if and $values.autoscaling.enabled (lt (int $values.autoscaling.maxReplicas) (int $values.autoscaling.minReplicas)) -}}
{{-   fail "autoscaling.maxReplicas is less than autoscaling.minReplicas" -}}
{{- end -}}
{{- include "navicert.extraArgsChecks" . -}}
{{- end }}

{{- define "navicert.proxyChecks" -}}
{{- $settings := include "navicert.proxySettings" . | fromYaml -}}
{{- if and (eq ($settings.mode | default "impersonation") "requestHeader") (not .Values.existingConfigMap) (not .Values.proxy.kubeconfig.secretName) -}}
{{-   fail "mode requestHeader needs a client certificate that the API server trusts: set proxy.kubeconfig.secretName" -}}
{{- end -}}
{{- if and (eq .Values.rbac.impersonation "constrained") .Values.rbac.create (semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version) -}}
{{-   fail (printf "rbac.impersonation constrained needs Kubernetes 1.36 or later, not %s; `helm template` takes the version from --kube-version" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end }}

{{- define "navicert.webhookChecks" -}}
{{- $authorities := include "navicert.clientCASources" . -}}
{{- $isAuthenticated := or $authorities .Values.webhook.bearerToken.secretName -}}
{{- if contains "," $authorities -}}
{{-   fail (printf "webhook.clientCA has more than one source: %s; set one of them" $authorities) -}}
{{- else if and .Values.webhook.allowAnyCaller $isAuthenticated -}}
{{-   fail "webhook.allowAnyCaller conflicts with webhook.clientCA and webhook.bearerToken" -}}
{{- else if not (or .Values.webhook.allowAnyCaller $isAuthenticated) -}}
{{-   fail "missing client authentication of the webhook: set webhook.clientCA, webhook.bearerToken.secretName or webhook.allowAnyCaller" -}}
{{- else if and .Values.webhook.clientAllowedNames (not $authorities) -}}
{{-   fail "webhook.clientAllowedNames needs webhook.clientCA" -}}
{{- end -}}
{{- end }}

{{/* A flag of the chart in extraArgs would be given twice, and `--mode` would need another role. */}}
{{- define "navicert.extraArgsChecks" -}}
{{- $flags := list "--mode" -}}
{{- range include "navicert.arguments" . | fromYamlArray -}}
{{-   if hasPrefix "--" . }}{{ $flags = append $flags (splitList "=" . | first) }}{{ end -}}
{{- end -}}
{{- range .Values.extraArgs -}}
{{-   $flag := splitList "=" . | first -}}
{{-   if has $flag $flags -}}
{{-     fail (printf "%s in extraArgs is not allowed: the chart sets it from its own values" $flag) -}}
{{-   end -}}
{{- end -}}
{{- end }}
