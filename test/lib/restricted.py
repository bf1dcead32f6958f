"""The Pod Security Standard "restricted", as it is written down (kubernetes.io/docs/concepts/security/pod-security-standards): what a pod
does that it forbids. Kubernetes 1.20 cannot be asked, so it is checked on the objects."""

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
SYSCTLS = {"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.tcp_syncookies",
           "net.ipv4.ping_group_range"}
SELINUX = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
APPARMOR = {"RuntimeDefault", "Localhost"}
APPARMOR_NOTE = "container.apparmor.security.beta.kubernetes.io/"  # an annotation for each container, before there was a field
SECCOMP = {"RuntimeDefault", "Localhost"}


def _of_pod(spec):
    for key in "hostNetwork", "hostPID", "hostIPC":
        if spec.get(key):
            yield f"{key} is true"
    for volume in spec.get("volumes") or []:
        kinds = set(volume) - {"name"} or {"emptyDir"}
        if not kinds <= VOLUMES:
            yield f"volume {volume['name']} is {', '.join(sorted(kinds))}"
    context = spec.get("securityContext") or {}
    for sysctl in context.get("sysctls") or []:
        if sysctl["name"] not in SYSCTLS:
            yield f"sysctl {sysctl['name']}"
    yield from _labels(context)


def _labels(context):
    """What stands in the security context of a pod as of a container."""
    if (context.get("windowsOptions") or {}).get("hostProcess"):
        yield "hostProcess is true"
    selinux = context.get("seLinuxOptions") or {}
    if selinux.get("type", "") not in SELINUX:
        yield "seLinuxOptions.type"
    for key in "user", "role":
        if selinux.get(key):
            yield f"seLinuxOptions.{key}"
    if (context.get("appArmorProfile") or {"type": "RuntimeDefault"}).get("type") not in APPARMOR:
        yield "appArmorProfile.type is not RuntimeDefault"


def _user(pod, own):
    if (own.get("runAsNonRoot", pod.get("runAsNonRoot"))) is not True:
        yield "runAsNonRoot is not true"
    if own.get("runAsUser", pod.get("runAsUser")) == 0:
        yield "runAsUser is 0"


def _capabilities(own):
    capabilities = own.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or []):
        yield "capabilities.drop is not ALL"
    if set(capabilities.get("add") or []) - {"NET_BIND_SERVICE"}:
        yield f"capabilities.add is {', '.join(capabilities['add'])}"


def _of_container(pod, container):
    own = container.get("securityContext") or {}
    if own.get("privileged"):
        yield "privileged is true"
    if own.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation is not false"
    if own.get("procMount", "Default") != "Default":
        yield f"procMount is {own['procMount']}"
    if (own.get("seccompProfile") or pod.get("seccompProfile") or {}).get("type") not in SECCOMP:
        yield "seccompProfile.type is not RuntimeDefault"
    yield from _labels(own)
    if any(port.get("hostPort") for port in container.get("ports") or []):
        yield "hostPort"
    yield from _user(pod, own)
    yield from _capabilities(own)


def violations(spec, annotations=None):
    """Of a pod's spec, and its annotations: sentences, "container: what"."""
    pod = spec.get("securityContext") or {}
    found = list(_of_pod(spec))
    for key, value in (annotations or {}).items():
        if key.startswith(APPARMOR_NOTE) and value != "runtime/default" and not value.startswith("localhost/"):
            found.append(f"{key.removeprefix(APPARMOR_NOTE)}: AppArmor is {value}")
    for key in "initContainers", "containers", "ephemeralContainers":
        for container in spec.get(key) or []:
            found += [f"{container['name']}: {what}" for what in _of_container(pod, container)]
    return found
