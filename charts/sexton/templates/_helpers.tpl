{{/* The name of the chart, as a label has it. */}}
{{- define "sexton.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of most objects: that of the release, with the chart's name unless it is in there already. */}}
{{- define "sexton.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $full .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Objects of the whole cluster bear the namespace too: releases in two namespaces may have one name. */}}
{{- define "sexton.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "sexton.fullname" .) }}
{{- end }}

{{- define "sexton.serviceAccountName" -}}
{{- default (ternary (include "sexton.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{/* Who the operator is to the API server. */}}
{{- define "sexton.user" -}}
{{- printf "system:serviceaccount:%s:%s" .Release.Namespace (include "sexton.serviceAccountName" .) }}
{{- end }}

{{/* The test's pod and its Service; a Service's name is a DNS label, and the pod's variables begin with it. */}}
{{- define "sexton.testName" -}}
{{- printf "%s-test" (include "sexton.fullname" . | trunc 58 | trimSuffix "-") | replace "." "-" }}
{{- end }}

{{- define "sexton.selectorLabels" -}}
app.kubernetes.io/name: {{ include "sexton.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Selects the operator's pods, and not those of a test. */}}
{{- define "sexton.operatorLabels" -}}
{{ include "sexton.selectorLabels" . }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "sexton.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "sexton.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sexton.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{/* What the operator may do in a namespace that it looks after. tests/cluster/test_permissions.py takes each away. */}}
{{- define "sexton.rules" -}}
- apiGroups: [sexton.dev]
  resources: [schedules]
  verbs: [get, list, watch]
- apiGroups: [sexton.dev]
  resources: [schedules/status]
  verbs: [patch]
- apiGroups: [sexton.dev]
  resources: [scheduleruns]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [""]
  resources: [events]
  verbs: [get, create, patch]
{{- end }}

{{/* Refuses, with the reason, what would not work and what no schema can tell. */}}
{{- define "sexton.checked" -}}
{{- if gt (int .Values.replicas) 1 }}
{{- fail (printf "replicas is %d, and can't be more than 1 yet: nothing keeps two operators from working on the same Schedules" (int .Values.replicas)) }}
{{- end }}
{{- with .Values.settings.requestTimeout }}
{{- if le (float64 $.Values.terminationGracePeriodSeconds) (float64 .) }}
{{- fail (printf "terminationGracePeriodSeconds is %v, and must be more than settings.requestTimeout (%v), else the operator is killed in the midst of a write" $.Values.terminationGracePeriodSeconds .) }}
{{- end }}
{{- end }}
{{- end }}
