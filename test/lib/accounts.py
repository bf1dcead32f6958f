"""ServiceAccounts of a real control plane as what starts programs with their rights: a kubeconfig."""

import contextlib
import tempfile

from sonde_test import wait, write_kubeconfig


def granted_yet(cluster, ns, account, verb, group, resource, where=None, yes=True):
    """Waits until the authorizer, which learns of grants a moment later, lets ACCOUNT of NS do that in WHERE, or (not YES) does not.
    RESOURCE may have a subresource: "jobs/finalizers"."""
    resource, _, subresource = resource.partition("/")
    asked = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": f"system:serviceaccount:{ns}:{account}", "groups": ["system:serviceaccounts", f"system:serviceaccounts:{ns}"],
        "resourceAttributes": {"namespace": where or "", "verb": verb, "group": group, "resource": resource,
                               "subresource": subresource}}}

    def answered():
        status, body = cluster.api().post("/apis/authorization.k8s.io/v1/subjectaccessreviews", asked)
        assert status == 201, body
        return body["status"]["allowed"] == yes
    wait(answered, 120, f"the authorizer to know whether {account} may {verb} {resource}")


@contextlib.contextmanager
def kubeconfig_of(cluster, ns, account):
    """A kubeconfig of the ServiceAccount ACCOUNT in NS, which is also where its context is."""
    status, made = cluster.api().post(f"/api/v1/namespaces/{ns}/serviceaccounts/{account}/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    assert status == 201, made
    with tempfile.NamedTemporaryFile("w", suffix=".kubeconfig") as file:
        write_kubeconfig(file.name, cluster.address, cluster.authority, made["status"]["token"], ns)
        yield file.name
