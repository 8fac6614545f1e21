{{/* The rules of the proxy's ClusterRole: what `navicert serve proxy --print-rbac` prints for the same configuration, in the same order.
     A permission is a mapping with `verb` and either `group` and `resource` or `path`. */}}

{{/* Permissions for one identity: of the parameters `verb`, `group` and `name` (the resource of its name) and `parts`
     (`groups`, `uid`, `extra`). */}}
{{- define "navicert.identityPermissions" -}}
{{- $verb := .verb -}}
{{- $authentication := "authentication.k8s.io" -}}
{{- $permissions := list (dict "verb" $verb "group" .group "resource" .name) -}}
{{- if .parts.groups -}}
{{-   $permissions = append $permissions (dict "verb" $verb "group" .group "resource" "groups") -}}
{{- end -}}
{{- if .parts.uid -}}
{{-   $permissions = append $permissions (dict "verb" $verb "group" $authentication "resource" "uids") -}}
{{- end -}}
{{- range .parts.extra -}}
{{-   $permissions = append $permissions (dict "verb" $verb "group" $authentication "resource" (printf "userextras/%s" .)) -}}
{{- end -}}
{{- toYaml $permissions -}}
{{- end }}

{{/* Permissions for requests by constrained impersonation in a mode. */}}
{{- define "navicert.requestPermissions" -}}
{{- $mode := . -}}
{{- $permissions := list -}}
{{- range list "get" "list" "watch" "create" "update" "patch" "delete" "deletecollection" -}}
{{-   $permissions = append $permissions (dict "verb" (printf "impersonate-on:%s:%s" $mode .) "group" "*" "resource" "*") -}}
{{- end -}}
{{- $permissions = append $permissions (dict "verb" (printf "impersonate-on:%s:get" $mode) "path" "/*") -}}
{{- toYaml $permissions -}}
{{- end }}

{{/* Everything the proxy needs by impersonation; an empty list for a front proxy (`mode: requestHeader`). */}}
{{- define "navicert.permissions" -}}
{{- $settings := include "navicert.proxySettings" . | fromYaml -}}
{{- $allowsImpersonation := eq ($settings.clientImpersonation | default "refuse") "allow" -}}
{{- $tokens := $settings.serviceAccountTokens | default "reject" -}}
{{- $allowedNames := $settings.allowedNames | default dict -}}
{{- $isConstrained := eq .Values.rbac.impersonation "constrained" -}}
{{- $permissions := list -}}
{{- if ne ($settings.mode | default "impersonation") "requestHeader" -}}
{{-   $users := include "navicert.mappedAttributes" . | fromYaml -}}
{{-   if or (dig "enabled" false (.Values.authenticationConfiguration.anonymous | default dict)) $allowsImpersonation -}}
{{-     $_ := set $users "groups" "true" -}}
{{-   end -}}
{{-   if $allowsImpersonation -}}
{{-     $original := list "original-user.navicert/username" "original-user.navicert/uid" "original-user.navicert/groups" -}}
{{-     $_ := set $users "extra" (concat $users.extra $original) -}}
{{-   end -}}
{{-   if $isConstrained -}}
{{-     $identity := dict "verb" "impersonate:user-info" "group" "authentication.k8s.io" "name" "users" "parts" $users -}}
{{-     $permissions = concat $permissions (include "navicert.identityPermissions" $identity | fromYamlArray) -}}
{{-     $permissions = concat $permissions (include "navicert.requestPermissions" "user-info" | fromYamlArray) -}}
{{-   else -}}
{{-     $identity := dict "verb" "impersonate" "group" "" "name" "users" "parts" $users -}}
{{-     $permissions = concat $permissions (include "navicert.identityPermissions" $identity | fromYamlArray) -}}
{{-   end -}}
{{-   if and (eq $tokens "impersonate") $isConstrained -}}
{{-     $name := dict "verb" "impersonate:serviceaccount" "group" "authentication.k8s.io" "resource" "serviceaccounts" -}}
{{-     $permissions = append $permissions $name -}}
{{-     $permissions = concat $permissions (include "navicert.requestPermissions" "serviceaccount" | fromYamlArray) -}}
{{-   else if eq $tokens "impersonate" -}}
{{-     $bound := list "credential-id" "pod-name" "pod-uid" "node-name" "node-uid" -}}
{{-     $extra := list -}}
{{-     range $bound }}{{ $extra = append $extra (printf "authentication.kubernetes.io/%s" .) }}{{ end -}}
{{-     $parts := dict "groups" "true" "uid" "true" "extra" $extra -}}
{{-     $identity := dict "verb" "impersonate" "group" "" "name" "serviceaccounts" "parts" $parts -}}
{{-     $permissions = concat $permissions (include "navicert.identityPermissions" $identity | fromYamlArray) -}}
{{-   end -}}
{{-   if $allowedNames.serviceAccounts -}}
{{-     $identity := dict "verb" "impersonate" "group" "" "name" "serviceaccounts" "parts" $users -}}
{{-     $permissions = concat $permissions (include "navicert.identityPermissions" $identity | fromYamlArray) -}}
{{-   end -}}
{{-   if $allowedNames.nodes -}}
{{-     $identity := dict "verb" "impersonate" "group" "" "name" "users" "parts" $users -}}
{{-     $permissions = concat $permissions (include "navicert.identityPermissions" $identity | fromYamlArray) -}}
{{-   end -}}
{{-   if ne $tokens "reject" -}}
{{-     $permissions = append $permissions (dict "verb" "create" "group" "authentication.k8s.io" "resource" "tokenreviews") -}}
{{-   end -}}
{{-   if $allowsImpersonation -}}
{{-     $permissions = append $permissions (dict "verb" "create" "group" "authorization.k8s.io" "resource" "subjectaccessreviews") -}}
{{-   end -}}
{{- end -}}
{{- toYaml $permissions -}}
{{- end }}

{{/* The rules that grant permissions: one per API group and set of verbs. First the resources of each verb and group are collected,
     then the verbs of equal resources. */}}
{{- define "navicert.policyRules" -}}
{{- $byVerb := list -}}
{{- range $permission := . -}}
{{-   $found := false -}}
{{-   range $rule := $byVerb -}}
{{-     if and (not $found) (eq (first $rule.verbs) $permission.verb) (eq (hasKey $rule "nonResourceURLs") (hasKey $permission "path")) -}}
{{-       if hasKey $permission "path" -}}
{{-         $found = true -}}
{{-         $_ := set $rule "nonResourceURLs" (append $rule.nonResourceURLs $permission.path | uniq) -}}
{{-       else if eq (first $rule.apiGroups) $permission.group -}}
{{-         $found = true -}}
{{-         $_ := set $rule "resources" (append $rule.resources $permission.resource | uniq) -}}
{{-       end -}}
{{-     end -}}
{{-   end -}}
{{-   if and (not $found) (hasKey $permission "path") -}}
{{-     $byVerb = append $byVerb (dict "nonResourceURLs" (list $permission.path) "verbs" (list $permission.verb)) -}}
{{-   else if not $found -}}
{{-     $rule := dict "apiGroups" (list $permission.group) "resources" (list $permission.resource) "verbs" (list $permission.verb) -}}
{{-     $byVerb = append $byVerb $rule -}}
{{-   end -}}
{{- end -}}
{{- $rules := list -}}
{{- range $rule := $byVerb -}}
{{-   $found := false -}}
{{-   range $known := $rules -}}
{{-     if and (not $found) (eq (omit $known "verbs" | toJson) (omit $rule "verbs" | toJson)) -}}
{{-       $found = true -}}
{{-       $_ := set $known "verbs" (concat $known.verbs $rule.verbs) -}}
{{-     end -}}
{{-   end -}}
{{-   if not $found }}{{ $rules = append $rules $rule }}{{ end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end }}

{{/* The rules of the role: the given ones, or those that the configuration needs. */}}
{{- define "navicert.roleRules" -}}
{{- if .Values.rbac.rules -}}
{{- toYaml .Values.rbac.rules -}}
{{- else -}}
{{- include "navicert.policyRules" (include "navicert.permissions" . | fromYamlArray) -}}
{{- end -}}
{{- end }}
