"""Manifests for these tests, as a person would write them: good ones, to be made bad in one place."""

from copy import deepcopy
from typing import Any, Final

import yaml

# Every field that batch/v1 CronJobSpec has, the leavings of `kubectl create cronjob -o yaml` included.
CRONJOB: Final = """
apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly-report
  namespace: reports
  creationTimestamp: null
  labels: {app.kubernetes.io/name: report}
  annotations: {example.com/owner: "data team"}
spec:
  schedule: "30 2 * * 1-5"
  timeZone: Europe/Berlin
  concurrencyPolicy: Replace
  suspend: false
  startingDeadlineSeconds: 600
  successfulJobsHistoryLimit: 5
  failedJobsHistoryLimit: 2
  jobTemplate:
    metadata:
      name: nightly-report
      creationTimestamp: null
      labels: {team: data}
      annotations: {sidecar.istio.io/inject: "false"}
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 3600
      ttlSecondsAfterFinished: 86400
      parallelism: 1
      completions: 1
      completionMode: NonIndexed
      podFailurePolicy:
        rules:
        - action: FailJob
          onExitCodes: {containerName: report, operator: In, values: [42]}
      template:
        metadata:
          creationTimestamp: null
          labels: {app.kubernetes.io/name: report}
        spec:
          serviceAccountName: report
          restartPolicy: Never
          initContainers:
          - name: fetch
            image: example.com/fetch:1.4
            args: [--all]
          containers:
          - name: report
            image: example.com/report@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
            command: [/bin/report]
            env:
            - name: PASSWORD
              valueFrom: {secretKeyRef: {name: report, key: password}}
            resources:
              requests: {cpu: 100m, memory: 64Mi}
            volumeMounts:
            - {name: scratch, mountPath: /scratch}
          volumes:
          - name: scratch
            emptyDir: {}
          tolerations:
          - {key: batch, operator: Exists}
status: {}
"""


def cronjob_as_schedule() -> dict[str, Any]:
    """Return the CronJob with `apiVersion` and `kind` changed, and nothing else."""
    manifest: dict[str, Any] = yaml.safe_load(CRONJOB)
    return manifest | {"apiVersion": "sexton.dev/v1", "kind": "Schedule"}


def schedule(**spec: Any) -> dict[str, Any]:
    """Return a minimal Schedule with these fields of its spec; a field that is `...` is left out."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/job:1"}]}
    full = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}} | spec
    return {
        "apiVersion": "sexton.dev/v1",
        "kind": "Schedule",
        "metadata": {"name": "nightly", "namespace": "default"},
        "spec": deepcopy({key: value for key, value in full.items() if value is not ...}),
    }


def schedule_with_pod(**pod: Any) -> dict[str, Any]:
    """Return a minimal Schedule with these fields of its pod's spec; a field that is `...` is left out."""
    manifest = schedule()
    template = manifest["spec"]["jobTemplate"]["spec"]["template"]
    full = template["spec"] | pod
    template["spec"] = deepcopy({key: value for key, value in full.items() if value is not ...})
    return manifest


def run(**spec: Any) -> dict[str, Any]:
    """Return a ScheduleRun with these fields of its spec."""
    return {
        "apiVersion": "sexton.dev/v1",
        "kind": "ScheduleRun",
        "metadata": {"name": "now", "namespace": "default"},
        "spec": deepcopy(spec),
    }
