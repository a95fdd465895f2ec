"""The names that Sexton writes on objects: its API group, kinds, labels and annotations.

They are part of the product's interface: people select by the labels, and a Job's annotations are
what a restarted operator learns about it from. Changing one is a breaking change.
"""

import hashlib
from typing import Final

GROUP: Final = "sexton.dev"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

SCHEDULE_KIND: Final = "Schedule"
SCHEDULE_PLURAL: Final = "schedules"
RUN_KIND: Final = "ScheduleRun"
RUN_PLURAL: Final = "scheduleruns"
CATEGORY: Final = "sexton"

# Labels, on runs, Jobs and pods.
SCHEDULE_LABEL: Final = f"{GROUP}/schedule"
TRIGGER_LABEL: Final = f"{GROUP}/trigger"

NOT_FOUND_LABEL: Final = f"{GROUP}/schedule-not-found"
"""On requests for a Schedule that is not there: they belong to nobody, and are removed after an hour."""

# Annotations, on runs, Jobs and pods: all that a run knows.
SCHEDULE_NAME_ANNOTATION: Final = f"{GROUP}/schedule-name"
RUN_NAME_ANNOTATION: Final = f"{GROUP}/run"
RUN_UID_ANNOTATION: Final = f"{GROUP}/run-uid"
SCHEDULED_TIME_ANNOTATION: Final = f"{GROUP}/scheduled-time"
EXPRESSION_ANNOTATION: Final = f"{GROUP}/expression"
TIME_ZONE_ANNOTATION: Final = f"{GROUP}/time-zone"
ATTEMPT_ANNOTATION: Final = f"{GROUP}/attempt"
TRIGGER_ANNOTATION: Final = f"{GROUP}/trigger"
CAUGHT_UP_ANNOTATION: Final = f"{GROUP}/caught-up"
MANUAL_ANNOTATION: Final = f"{GROUP}/manual"
DELIVERY_ID_ANNOTATION: Final = f"{GROUP}/delivery-id"
"""On retries: the UID of the chain's first record."""
QUEUED_ANNOTATION: Final = f"{GROUP}/queued"
"""On records that were stored before their run had a Job: its start is counted by itself."""
UNFIRED_ANNOTATION: Final = f"{GROUP}/unfired"
"""On records of failed attempts and of retries that had no Job, like all attempts before them: the first Job of the
chain is still to be counted in `fired`."""
RECORD_OF_ANNOTATION: Final = f"{GROUP}/record-of"
"""On records whose own name somebody had taken: the name that they would have, which is that of their Job. On those
of runs whose request could not be written into: the name of the request."""
REDRIVE_OF_ANNOTATION: Final = f"{GROUP}/redrive-of"
TTL_ANNOTATION: Final = f"{GROUP}/ttl-seconds-after-finished"
"""The `ttlSecondsAfterFinished` that was taken out of the Job, for the operator to apply itself."""

CRONJOB_TIMESTAMP_ANNOTATION: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""What the built-in CronJob controller writes; tools read it, so Sexton's Jobs carry it too."""

_LABEL_VALUE_LIMIT: Final = 63
_HASH_LENGTH: Final = 10


def schedule_label_value(name: str) -> str:
    """Return the value of `sexton.dev/schedule` for the Schedule of this name.

    A Schedule's name may have 253 characters, a label's value only 63: a longer name is cut and ends in
    a hash of the whole, so that two long names with one beginning don't share a label.
    """
    if len(name) <= _LABEL_VALUE_LIMIT:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: _LABEL_VALUE_LIMIT - _HASH_LENGTH - 1].rstrip('-.')}-{digest}"


def is_ours(name: str) -> bool:
    """Tell whether a label or an annotation of this name is one that only the operator writes."""
    return name.startswith(f"{GROUP}/")
