"""etcd, the API server, the controller manager and the scheduler: their command lines, starts and stops."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path

from cluster_tools.addresses import LOOPBACK
from cluster_tools.api_client import ApiClient
from cluster_tools.audit import audit_flags
from cluster_tools.keys import Authority
from cluster_tools.ledger import Ledger
from cluster_tools.processes import Component
from cluster_tools.users import ADMIN, CONTROLLER_MANAGER, SCHEDULER, Accounts
from cluster_tools.waiting import wait_for

READY_TIMEOUT = 60.0
# Without a node nobody routes these, so that every cluster may have the same.
SERVICES_WITHOUT_NODE = IPv4Network("10.96.0.0/16")
# The default of 20 requests a second would throttle Jobs, and with them whatever a test measures.
CONTROLLERS_GRACE = 10.0
UNTHROTTLED = ("--kube-api-qps=5000", "--kube-api-burst=10000")


class ControlPlane:
    """The servers of one cluster, started from its ledger."""

    def __init__(self, ledger: Ledger, programs: Mapping[str, Path]) -> None:
        folder = ledger.folder
        self._ledger = ledger
        self._programs = programs
        addresses = ledger.addresses
        # With a real node: the address that pods can reach. Otherwise nobody but this machine.
        self.address = addresses.host if addresses else LOOPBACK
        self._services = addresses.services if addresses else SERVICES_WITHOUT_NODE
        self.server = f"https://{self.address}:{ledger.ports['kube-apiserver']}"
        self.authority = Authority(folder / "keys")
        self.accounts = Accounts(folder / "accounts", self.server, self.authority.certificate)
        self.audit_log = folder / "audit.log"
        self.etcd = Component(folder, "etcd")
        self.api_server = Component(folder, "kube-apiserver")
        self.controller_manager = Component(folder, "kube-controller-manager")
        self.scheduler = Component(folder, "kube-scheduler")
        self._first_controller_manager_argv: list[str] | None = None

    @property
    def components(self) -> tuple[Component, ...]:
        """All of its programs."""
        return self.etcd, self.api_server, self.controller_manager, self.scheduler

    @property
    def service_address(self) -> str:
        """The cluster IP of the Service `kubernetes`."""
        return str(self._services[1])

    def api_client(self) -> ApiClient:
        """Return a client with the administrator's rights."""
        return ApiClient(self.server, self.authority.certificate, self.accounts.token(ADMIN.name))

    def start_etcd(self) -> None:
        """Start etcd; its data are thrown away with the cluster, so it need not wait for the disk."""
        client, peer = (f"http://{LOOPBACK}:{self._ledger.ports[name]}" for name in ("etcd", "etcd-peer"))
        self.etcd.start(
            [
                self._programs["etcd"],
                "--name=etcd",
                f"--data-dir={self._ledger.folder / 'etcd'}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=etcd={peer}",
                "--unsafe-no-fsync",
                "--log-level=warn",
            ]
        )

    def start_api_server(self, extra_flags: Sequence[str] = ()) -> None:
        """Start the API server; it waits for etcd by itself."""
        hosts = [str(self.address), self.service_address, "localhost", "kubernetes.default.svc"]
        serving = self.authority.sign("kube-apiserver", "/CN=kube-apiserver", hosts)
        to_kubelet = self.authority.sign(
            "kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client"
        )
        key = self.authority.service_account_key
        self.api_server.start(
            [
                self._programs["kube-apiserver"],
                f"--etcd-servers=http://{LOOPBACK}:{self._ledger.ports['etcd']}",
                f"--bind-address={self.address}",
                *self._advertising(),
                f"--secure-port={self._ledger.ports['kube-apiserver']}",
                f"--tls-cert-file={serving.certificate}",
                f"--tls-private-key-file={serving.key}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                f"--service-cluster-ip-range={self._services}",
                "--authorization-mode=Node,RBAC",
                f"--token-auth-file={self.accounts.token_file}",
                "--allow-privileged",
                # The node's name can't be looked up; its address can be reached.
                "--kubelet-preferred-address-types=InternalIP",
                f"--kubelet-certificate-authority={self.authority.certificate}",
                f"--kubelet-client-certificate={to_kubelet.certificate}",
                f"--kubelet-client-key={to_kubelet.key}",
                *audit_flags(self._ledger.folder / "audit-policy.json", self.audit_log),
                *extra_flags,
            ]
        )

    def _advertising(self) -> list[str]:
        # Kubernetes refuses to advertise a loopback address; and where no pod runs nobody asks for it.
        if self._ledger.addresses is None:
            return ["--endpoint-reconciler-type=none"]
        return [f"--advertise-address={self.address}"]

    def start_controller_manager(self, extra_flags: Sequence[str] = ()) -> None:
        """Start the controllers; of a flag given twice the last one counts."""
        self.controller_manager.start(self.controllers_argv([*UNTHROTTLED, *extra_flags]))

    def controllers_argv(self, flags: Sequence[str]) -> list[str | Path]:
        """Return a command line of the controller manager, which has its own client limits unless a flag lifts them."""
        return [
            self._programs["kube-controller-manager"],
            f"--kubeconfig={self.accounts.kubeconfig(CONTROLLER_MANAGER.name)}",
            "--leader-elect=false",
            "--secure-port=0",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self.authority.service_account_key}",
            f"--root-ca-file={self.authority.certificate}",
            *flags,
        ]

    def restart_controller_manager(self, extra_flags: Sequence[str]) -> None:
        """Restart the controllers with flags in addition to those of their first start."""
        if self._first_controller_manager_argv is None:
            self._first_controller_manager_argv = self.controller_manager.argv
        self.controller_manager.stop(CONTROLLERS_GRACE)
        self.controller_manager.start([*self._first_controller_manager_argv, *extra_flags])

    def start_scheduler(self) -> None:
        """Start the scheduler, which binds pods to nodes."""
        self.scheduler.start(
            [
                self._programs["kube-scheduler"],
                f"--kubeconfig={self.accounts.kubeconfig(SCHEDULER.name)}",
                "--leader-elect=false",
                "--secure-port=0",
                *UNTHROTTLED,
            ]
        )

    def start_again(self, component: Component) -> None:
        """Start a stopped component with the command line it had: same ports, same data."""
        if not component.alive:
            component.start(component.argv)

    def wait_until_ready(self) -> None:
        """Wait for /readyz; a component that dies meanwhile gives an error with the end of its log."""
        client = self.api_client()

        def ready() -> bool:
            self.etcd.check()
            self.api_server.check()
            return client.ready()

        wait_for("the API server to be ready", ready, READY_TIMEOUT)

    def wait_for_default_account(self, namespace: str = "default") -> None:
        """Wait for a namespace's default service account, without which no pod is admitted there."""
        client = self.api_client()
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"

        def present() -> bool:
            self.controller_manager.check()
            return client.read(path) is not None

        wait_for(f"the default service account in {namespace}", present, READY_TIMEOUT)
