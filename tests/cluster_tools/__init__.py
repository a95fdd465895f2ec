"""The local Kubernetes cluster for tests, demo and benchmarks: `Cluster.start(ClusterOptions(…))`.

`python -m cluster_tools` offers the same by hand.
"""

from cluster_tools.access import ClusterAccess
from cluster_tools.cluster import Cluster, ClusterOptions
from cluster_tools.errors import ClusterError
from cluster_tools.users import User

__all__ = ["Cluster", "ClusterAccess", "ClusterError", "ClusterOptions", "User"]
