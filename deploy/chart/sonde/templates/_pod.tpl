{{/* Pod Security "restricted", and a root that cannot be written to. */}}
{{- define "sonde.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "sonde.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* The argument is a list: the root, the component. */}}
{{- define "sonde.spread" -}}
topologySpreadConstraints: # of the pods of one Deployment over nodes
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "sonde.selector" . | nindent 8 }}
{{- end }}

{{/* Where the operator writes finished runs, and the API reads them. */}}
{{- define "sonde.historyArgs" -}}
{{- if eq .Values.history.type "postgres" }}
- {{ printf "--history=%s" .Values.history.postgres.url | quote }}
- "--history-password-file=/etc/sonde/postgres/{{ .Values.history.postgres.passwordSecret.key }}"
{{- else }}
- "--history=/var/lib/sonde/history.db"
{{- end }}
{{- end }}

{{- define "sonde.apiArgs" -}}
- "--listen=:8000"
{{- if .Values.api.tls.secretName }}
- "--tls-cert=/etc/sonde/tls/tls.crt"
- "--tls-key=/etc/sonde/tls/tls.key"
{{- end }}
{{- if .Values.api.plainHTTP }}
- "--plain-http"
{{- end }}
{{- range .Values.api.allowedHosts }}
- {{ printf "--allowed-host=%s" . | quote }}
{{- end }}
{{- end }}

{{- define "sonde.logArgs" -}}
- "--log-format={{ .Values.operator.logFormat }}"
- "--log-level={{ .Values.operator.logLevel }}"
{{- with .Values.watchNamespace }}
- {{ printf "--namespace=%s" . | quote }}
{{- end }}
{{- end }}

{{/* The argument is a list: the root, whether the API is served here, whether the history's file is here. */}}
{{- define "sonde.mounts" -}}
{{- $root := index . 0 }}
{{- if and (index . 1) $root.Values.api.tls.secretName }}
- name: tls
  mountPath: /etc/sonde/tls
  readOnly: true
{{- end }}
{{- if eq $root.Values.history.type "postgres" }}
- name: postgres
  mountPath: /etc/sonde/postgres
  readOnly: true
{{- else if index . 2 }}
- name: history
  mountPath: /var/lib/sonde
- name: tmp
  mountPath: /tmp
{{- end }}
{{- end }}

{{- define "sonde.volumes" -}}
{{- $root := index . 0 }}{{ $history := $root.Values.history }}
{{- if and (index . 1) $root.Values.api.tls.secretName }}
- name: tls
  secret:
    secretName: {{ $root.Values.api.tls.secretName | quote }}
{{- end }}
{{- if eq $history.type "postgres" }}
- name: postgres
  secret:
    secretName: {{ $history.postgres.passwordSecret.name | quote }}
    defaultMode: 0440
{{- else if index . 2 }}
- name: history
  {{- if $history.sqlite.persistent }}
  persistentVolumeClaim:
    claimName: {{ $history.sqlite.existingClaim | default "sonde-history" | quote }}
  {{- else }}
  emptyDir: {}
  {{- end }}
- name: tmp # SQLite sorts in it
  emptyDir:
    sizeLimit: 64Mi
{{- end }}
{{- end }}
