"""kinds - where the oracles find the kinds they ask about: path, apiVersion, plural, definition."""

from sonde_test import wait

STRATEGIC_PATCH = "application/strategic-merge-patch+json"

KINDS = {
    "ConfigMap": ("/api/v1", "v1", "configmaps", "io.k8s.api.core.v1.ConfigMap"),
    "Pod": ("/api/v1", "v1", "pods", "io.k8s.api.core.v1.Pod"),
    "PodTemplate": ("/api/v1", "v1", "podtemplates", "io.k8s.api.core.v1.PodTemplate"),
    "Service": ("/api/v1", "v1", "services", "io.k8s.api.core.v1.Service"),
    "Secret": ("/api/v1", "v1", "secrets", "io.k8s.api.core.v1.Secret"),
    "ServiceAccount": ("/api/v1", "v1", "serviceaccounts", "io.k8s.api.core.v1.ServiceAccount"),
    "ResourceQuota": ("/api/v1", "v1", "resourcequotas", "io.k8s.api.core.v1.ResourceQuota"),
    "Event": ("/api/v1", "v1", "events", "io.k8s.api.core.v1.Event"),
    "Job": ("/apis/batch/v1", "batch/v1", "jobs", "io.k8s.api.batch.v1.Job"),
    "Lease": ("/apis/coordination.k8s.io/v1", "coordination.k8s.io/v1", "leases", "io.k8s.api.coordination.v1.Lease"),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1", "roles", "io.k8s.api.rbac.v1.Role"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1", "rolebindings",
                    "io.k8s.api.rbac.v1.RoleBinding"),
}


def takes_pods(api, namespace):
    """Waits until NAMESPACE does: 1.20 refuses a pod before its account has a token."""
    wait(lambda: api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")[1].get("secrets"), what="a namespace that takes pods")
