{{- define "sonde.ports" -}}
ports:
{{- range . }}
  - port: {{ . }}
    protocol: TCP
{{- end }}
{{- end }}

{{/* Egress to names and to the Kubernetes API, which everything of ours needs. */}}
{{- define "sonde.egress" -}}
- ports: # DNS, wherever it is
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{ include "sonde.egressTo" .Values.networkPolicy.apiServer }}
{{- end }}

{{/* {cidrs, ports} */}}
{{- define "sonde.egressTo" -}}
- {{ include "sonde.ports" .ports | nindent 2 | trim }}
  {{- with .cidrs }}
  to:
    {{- range . }}
    - ipBlock:
        cidr: {{ . | quote }}
    {{- end }}
  {{- end }}
{{- end }}

{{/* Of the hosts in a URL of PostgreSQL's, with a blank between them. `sonde manifests` does the same. */}}
{{- define "sonde.postgresPorts" -}}
{{- $hosts := regexReplaceAll "^[^@]*@([^/?]*).*$" . "${1}" -}}
{{- $said := regexFind "[?&]port=[^&]*" . | trimAll "?&" | trimPrefix "port=" -}}
{{- $ports := list -}}
{{- range splitList "," ($said | default $hosts) -}}
{{- $ports = append $ports (regexFind "(^|:)[0-9]+$" . | trimPrefix ":" | default "5432") -}}
{{- end -}}
{{- $ports | uniq | join " " -}}
{{- end }}
