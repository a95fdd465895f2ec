"""A certificate authority for one cluster, and what it signs, made with the openssl program.

Real certificates rather than switched-off checks: a kubelet that runs as root
and believes everyone would hand the machine to any of its users.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_tools.errors import ClusterError, CommandError
from cluster_tools.running import run

DAYS = "365"
CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")

# All settings are here, so that the machine's own openssl.cnf has no say.
SETTINGS = """
[req]
distinguished_name = name
prompt = no
[name]
CN = sexton test cluster
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key."""

    certificate: Path
    key: Path


class Authority:
    """The cluster's own certificate authority."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._settings = folder / "openssl.cnf"
        self.pair = KeyPair(folder / "ca.crt", folder / "ca.key")
        self.service_account_key = folder / "service-account.key"

    @property
    def certificate(self) -> Path:
        """What clients trust."""
        return self.pair.certificate

    def create(self) -> None:
        """Make the authority, and the key that signs service account tokens."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._settings.write_text(SETTINGS)
        files: list[str | Path] = ["-keyout", self.pair.key, "-out", self.pair.certificate]
        self._openssl("req", "-x509", "-days", DAYS, "-extensions", "authority", *CURVE, *files)
        self._openssl(
            "ecparam",
            "-name",
            "prime256v1",
            "-genkey",
            "-noout",
            "-out",
            self.service_account_key,
            conf=False,
        )

    def sign(self, name: str, subject: str, hosts: Sequence[str] = ()) -> KeyPair:
        """Make a key and a certificate for a subject like `/O=group/CN=user`, valid for these hosts."""
        pair = KeyPair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        request = self._folder / f"{name}.csr"
        extensions = self._folder / f"{name}.cnf"
        extensions.write_text(
            SETTINGS + (f"subjectAltName = {','.join(map(_alternative, hosts))}\n" if hosts else "")
        )
        self._openssl("req", "-new", "-subj", subject, *CURVE, "-keyout", pair.key, "-out", request)
        authority: list[str | Path] = [
            "-CA",
            self.pair.certificate,
            "-CAkey",
            self.pair.key,
            "-CAcreateserial",
        ]
        extra: list[str | Path] = ["-extfile", extensions, "-extensions", "leaf", "-days", DAYS]
        self._openssl(
            "x509", "-req", "-in", request, *authority, *extra, "-out", pair.certificate, conf=False
        )
        return pair

    def _openssl(self, *words: str | Path, conf: bool = True) -> None:
        command, *rest = words
        settings: list[str | Path] = ["-config", self._settings] if conf else []
        try:
            run(["openssl", command, *settings, *rest])
        except CommandError as failed:
            message = f"the cluster's certificates could not be made; is openssl installed? {failed}"
            raise ClusterError(message) from failed


def _alternative(host: str) -> str:
    return f"IP:{host}" if host.replace(".", "").isdigit() else f"DNS:{host}"
