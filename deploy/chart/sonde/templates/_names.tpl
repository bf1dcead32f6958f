{{/* What every object has. The argument is a list: the root, the component. */}}
{{- define "sonde.labels" -}}
{{ include "sonde.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
{{- end }}

{{- define "sonde.selector" -}}
app.kubernetes.io/name: sonde
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The argument is a list: the root, the key in images, the image's name. */}}
{{- define "sonde.image" -}}
{{- $root := index . 0 -}}
{{- $standard := printf "%s/%s:%s" $root.Values.images.registry (index . 2) $root.Chart.AppVersion -}}
{{- index $root.Values.images (index . 1) | default $standard -}}
{{- end }}

{{- define "sonde.replicas" -}}
{{- .Values.replicas | default (ternary 2 1 (eq .Values.history.type "postgres")) -}}
{{- end }}

{{/* Of the pods that serve the API. */}}
{{- define "sonde.apiComponent" -}}
{{- ternary "api" "operator" (eq .Values.history.type "postgres") -}}
{{- end }}
