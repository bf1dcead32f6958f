{{/* All that the operator may do where requests are: of its ClusterRole, and of its Role where it watches one namespace.
     docs/security.md says of each rule what it is for; a test proves that none is missing and none is left over. */}}
{{- define "sonde.operatorRules" -}}
# requests
- apiGroups: [nvidia.com]
  resources: [dynamographdeploymentrequests]
  verbs: [list, watch]
- apiGroups: [gpu.scheduler.io]
  resources: [cudaexperiments]
  verbs: [list, watch]
- apiGroups: [dprofiler.io] # a schedule makes requests of its own and takes old ones away
  resources: [algorithmprofilings, algorithmcomparisons]
  verbs: [get, list, watch, create, delete]
- apiGroups: [nvidia.com]
  resources: [dynamographdeploymentrequests/status]
  verbs: [patch]
- apiGroups: [gpu.scheduler.io]
  resources: [cudaexperiments/status, workloadprofiles/status]
  verbs: [patch]
- apiGroups: [dprofiler.io]
  resources: [algorithmprofilings/status, algorithmcomparisons/status]
  verbs: [patch]
# what is made for them has them as owners that are waited for, which some clusters let only those do who may write finalizers
- apiGroups: [nvidia.com]
  resources: [dynamographdeploymentrequests/finalizers]
  verbs: [update]
- apiGroups: [gpu.scheduler.io]
  resources: [cudaexperiments/finalizers]
  verbs: [update]
- apiGroups: [dprofiler.io]
  resources: [algorithmprofilings/finalizers, algorithmcomparisons/finalizers]
  verbs: [update]
# runs
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [configmaps] # patch: a run's own account may patch its two, and nobody can grant what he has not
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods/log] # for the same reason: a profiler that deploys what it measures reads why that failed
  verbs: [get]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [get, list, create, patch]
# what follows
- apiGroups: [gpu.scheduler.io]
  resources: [workloadprofiles]
  verbs: [get, list, watch, create, patch]
- apiGroups: [nvidia.com]
  resources: [dynamographdeployments]
  verbs: [get, list, watch, create, delete]
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [get, list, watch, create, delete]
{{- end }}

{{/* The API's own Deployment fills caches; all else it does with its callers' tokens. */}}
{{- define "sonde.apiRules" -}}
- apiGroups: [nvidia.com]
  resources: [dynamographdeploymentrequests]
  verbs: [list, watch]
- apiGroups: [gpu.scheduler.io]
  resources: [cudaexperiments, workloadprofiles]
  verbs: [list, watch]
- apiGroups: [dprofiler.io]
  resources: [algorithmprofilings, algorithmcomparisons]
  verbs: [list, watch]
{{- end }}

{{- define "sonde.viewRules" -}}
- apiGroups: [nvidia.com]
  resources: [dynamographdeploymentrequests, dynamographdeploymentrequests/status]
  verbs: [get, list, watch]
- apiGroups: [gpu.scheduler.io]
  resources: [cudaexperiments, cudaexperiments/status, workloadprofiles, workloadprofiles/status]
  verbs: [get, list, watch]
- apiGroups: [dprofiler.io]
  resources: [algorithmprofilings, algorithmprofilings/status, algorithmcomparisons, algorithmcomparisons/status]
  verbs: [get, list, watch]
{{- end }}

{{- define "sonde.editRules" -}}
{{ include "sonde.viewRules" . }}
- apiGroups: [nvidia.com]
  resources: [dynamographdeploymentrequests]
  verbs: [create, update, patch, delete, deletecollection]
- apiGroups: [gpu.scheduler.io]
  resources: [cudaexperiments]
  verbs: [create, update, patch, delete, deletecollection]
- apiGroups: [dprofiler.io]
  resources: [algorithmprofilings, algorithmcomparisons]
  verbs: [create, update, patch, delete, deletecollection]
{{- end }}

{{/* Results too: a WorkloadProfile that somebody writes is believed. */}}
{{- define "sonde.adminRules" -}}
{{ include "sonde.editRules" . }}
- apiGroups: [gpu.scheduler.io]
  resources: [workloadprofiles]
  verbs: [create, update, patch, delete, deletecollection]
{{- end }}

{{/* The steps of a pipeline. */}}
{{- define "sonde.componentRules" -}}
- apiGroups: [dprofiler.io]
  resources: [algorithmprofilings, algorithmcomparisons]
  verbs: [create, get, list, watch]
{{- end }}
