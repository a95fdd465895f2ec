"""The policies of `policies/` as templates of the chart: there each release has its own, for its own operator."""

from pathlib import Path
from typing import Final

from chart_tools.places import CHART, POLICIES

_HEADER: Final = "{{- /* Generated from policies/ by `make chart`. Don't edit. */ -}}\n"
_SEPARATOR: Final = "---\n"
_INDENT: Final = 10 * " "
_EDIT: Final = f"{_INDENT}// EDIT HERE: "
_COMMENT: Final = f"{_INDENT}// "

_USERS: Final = f'{_INDENT}"system:serviceaccount:sexton:sexton",\n'
_USERS_OF_RELEASE: Final = f"""\
{_INDENT}{{{{ include "sexton.user" . | toJson }}}},
{_INDENT}{{{{- range .Values.policies.trustedUsers }}}}
{_INDENT}{{{{ toJson . }}}},
{_INDENT}{{{{- end }}}}
"""

_GROUPS: Final = f'{_INDENT}"system:masters",\n'
_GROUPS_OF_RELEASE: Final = f"""\
{_INDENT}{{{{- range .Values.policies.trustedGroups }}}}
{_INDENT}{{{{ toJson . }}}},
{_INDENT}{{{{- end }}}}
"""

_LABELS: Final = """\
  labels:
    {{- include "sexton.labels" . | nindent 4 }}
"""

_NAMESPACES: Final = """\
  {{- with .Values.watchNamespaces }}
  matchResources:
    namespaceSelector:
      matchExpressions:
        - key: kubernetes.io/metadata.name
          operator: In
          values:
            {{- toYaml . | nindent 12 }}
  {{- end }}
"""


class UnexpectedPolicy(ValueError):
    """A file of `policies/` does not look as its template needs it."""


def policy_templates() -> dict[Path, str]:
    """Return the text of each template by its path."""
    return {
        CHART / "templates" / f"policy-{path.stem}.yaml": template(path.read_text(encoding="utf-8"))
        for path in sorted(POLICIES.glob("*.yaml"))
    }


def template(manifests: str) -> str:
    """Return the template of a policy and its binding: the same text, for the users and the namespaces of a release.

    Raises:
        UnexpectedPolicy: it is not a policy and a binding of one name, or does not name the users that are replaced.
    """
    policy, _, binding = _without_remarks(manifests).partition(_SEPARATOR)
    name = policy.partition("\nmetadata:\n  name: ")[2].partition("\n")[0]
    if not name.endswith(".sexton.dev") or f"\n  policyName: {name}\n" not in binding:
        raise UnexpectedPolicy("a policy and a binding of one name that ends in .sexton.dev are to be there")
    for given, of_release in ((_USERS, _USERS_OF_RELEASE), (_GROUPS, _GROUPS_OF_RELEASE)):
        before, found, after = policy.partition(given)
        if not found or given in after:
            raise UnexpectedPolicy(f"the line {given.strip()} is to be there once")
        policy = f"{before}{of_release}{after}"
    body = (policy + _SEPARATOR + binding + _NAMESPACES).replace(
        f"\n  name: {name}\n", f"\n  name: {{{{ $name }}}}\n{_LABELS}"
    )
    body = body.replace(f"\n  policyName: {name}\n", "\n  policyName: {{ $name }}\n")
    named = f'{{{{- $name := printf "%s.%s.{name}" .Release.Namespace (include "sexton.fullname" .) }}}}\n'
    return f"{_HEADER}{{{{- if .Values.policies.enabled }}}}\n{named}{body}{{{{- end }}}}\n"


def _without_remarks(manifests: str) -> str:
    """Leave out what tells people what to edit: in a release it is a value."""
    kept, editing = [], False
    for line in manifests.splitlines(keepends=True):
        editing = line.startswith(_EDIT) or (editing and line.startswith(_COMMENT))
        if not editing and not line.startswith("#"):
            kept.append(line.replace("{{", '{{ "{{" }}'))
    return "".join(kept)
