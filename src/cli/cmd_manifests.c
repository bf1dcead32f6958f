#include "cli/cli.h"
#include "cli/crds.h"
#include "cli/manifests.h"
#include "kube/names.h"

#define MANIFESTS_MAX (1 << 20)
#define PORTS_MAX     4096
#define IMAGE(name)   "localhost/" name ":" SONDE_VERSION
#define DOCUMENT      "---\n"
#define PORT(number)  "- port: " number "\n          protocol: TCP" /* of a NetworkPolicy in deploy/ */

struct manifests {
        const char *home, *watched, *postgres, *image, *pod_image, *ml_image; /* NULL: as in deploy/ */
        bool only_crds, no_crds, no_namespace;
};

/* ---- what is given */

static int refuse(const char *option, const char *text, const char *wanted)
{
        cli_error("manifests: --%s: '%s' is %s", option, text, wanted);
        return EXIT_USAGE;
}

/* Nothing in it ends a quoted text of YAML, or is expanded in a container's arguments. */
static bool is_plain(const char *text)
{
        for (; *text; text++)
                if (*text <= ' ' || *text > '~' || strchr("\"\\$'`", *text))
                        return false;
        return true;
}

static bool is_image(const char *text)
{
        static const char more[] = "._/:@-";

        for (const char *p = text; *p; p++)
                if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                      strchr(more, *p)))
                        return false;
        return *text;
}

/* postgres://USER@HOST..., and no password: whoever may look at Deployments would see it. */
static bool is_database(const char *url)
{
        static const char *const schemes[] = {"postgres://", "postgresql://"};

        for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
                if (str_has_prefix(str_of(url), str_of(schemes[i]))) {
                        const char *user = url + strlen(schemes[i]);
                        size_t n = strcspn(user, ":@/?");

                        return n && user[n] == '@' && is_plain(url);
                }
        return false;
}

/* ---- the server's ports; sonde.postgresPorts of the chart does the same */

/* What names them, with a comma between them: the option `port`, or else the hosts. */
static struct str what_names_ports(const char *url)
{
        static const char option[] = "port=";
        const char *hosts = strchr(url, '@') + 1, *query = strchr(hosts, '?');
        struct str rest = str_of(query ? query + 1 : "");

        while (rest.n) {
                struct str said = str_split(&rest, '&');

                if (str_has_prefix(said, str_of(option)) && said.n > strlen(option))
                        return str_n(said.p + strlen(option), said.n - strlen(option));
        }
        return str_n(hosts, strcspn(hosts, "/?"));
}

/* Of HOST, HOST:PORT or PORT; an address of IPv6 is in brackets. */
static bool port_of(struct str place, uint64_t *ret)
{
        size_t at = place.n;

        while (at && place.p[at - 1] >= '0' && place.p[at - 1] <= '9')
                at--;
        *ret = 5432;
        if (at == place.n || (at && place.p[at - 1] != ':'))
                return true;
        return str_to_u64(str_n(place.p + at, place.n - at), ret) && *ret >= 1 && *ret <= 65535;
}

/* As a policy has them, each once; false: one of them is no port. */
static bool add_ports(struct buf *out, const char *url)
{
        struct str places = what_names_ports(url);

        while (places.n) {
                uint64_t port;
                char text[64];

                if (!port_of(str_split(&places, ','), &port))
                        return false;
                snprintf(text, sizeof(text), PORT("%u"), (unsigned)port);
                if (out->n && buf_cstr(out) && strstr(buf_cstr(out), text))
                        continue;
                buf_printf(out, "%s%s", out->n ? "\n        " : "", text);
        }
        return out->n && buf_cstr(out);
}

static bool has_ports(const char *url)
{
        _cleanup_(buf_done) struct buf ports = BUF_INIT(PORTS_MAX);

        return add_ports(&ports, url);
}

static int check_names(const struct manifests *m)
{
        static const char no_namespace[] = "no namespace";

        if (m->home && !name_valid(NAME_LABEL, str_of(m->home)))
                return refuse("namespace", m->home, no_namespace);
        if (m->watched && !name_valid(NAME_LABEL, str_of(m->watched)))
                return refuse("namespaced", m->watched, no_namespace);
        if (m->postgres && (!is_database(m->postgres) || !has_ports(m->postgres)))
                return refuse("postgres", m->postgres,
                              "not postgres://USER@HOST:PORT/DATABASE; the password is in a Secret");
        return -1;
}

static int check(const struct manifests *m)
{
        const struct {
                const char *option, *text;
        } images[] = {{"image", m->image}, {"pod-image", m->pod_image}, {"ml-image", m->ml_image}};

        for (size_t i = 0; i < ARRAY_LEN(images); i++)
                if (images[i].text && !is_image(images[i].text))
                        return refuse(images[i].option, images[i].text,
                                      "no image; REGISTRY/NAME:TAG is wanted");
        if (m->watched && m->postgres) {
                cli_error("manifests: --namespaced and --postgres: use the chart (deploy/chart/sonde) for "
                          "both together");
                return EXIT_USAGE;
        }
        if (m->only_crds && m->no_crds) {
                cli_error("manifests: --crds-only and --no-crds: nothing is left to be printed");
                return EXIT_USAGE;
        }
        return check_names(m);
}

/* ---- the text */

struct replacement {
        const char *there, *given; /* GIVEN is NULL: it stays */
};

/* In one pass, so that what was put in is not looked at again. */
static void replace(struct buf *out, const char *text, const struct replacement *all, size_t n)
{
        while (*text) {
                size_t i = 0;

                while (i < n && (!all[i].given || !str_has_prefix(str_of(text), str_of(all[i].there))))
                        i++;
                if (i < n) {
                        buf_adds(out, all[i].given);
                        text += strlen(all[i].there);
                } else {
                        buf_addc(out, *text++);
                }
        }
}

/* It is the first document of each. */
static const char *without_namespace(const char *text)
{
        const char *next = strstr(text, "\n" DOCUMENT);

        return next ? next + strlen("\n" DOCUMENT) : text;
}

static int print(const struct manifests *m)
{
        _cleanup_(buf_done) struct buf ports = BUF_INIT(PORTS_MAX), out = BUF_INIT(MANIFESTS_MAX);
        bool of_url = m->postgres && add_ports(&ports, m->postgres);
        /* scripts/manifests has the same names. */
        const struct replacement all[] = {
                {"sonde-system", m->home},
                {"ml-pipeline", m->watched},
                {"postgres://sonde@postgres/sonde", m->postgres},
                {PORT("5432"), of_url ? buf_cstr(&ports) : NULL},
                {IMAGE("sonde"), m->image},
                {IMAGE("sonde-pod"), m->pod_image},
                {IMAGE("sonde-ml"), m->ml_image},
        };
        const char *text = m->watched    ? MANIFESTS_NAMESPACED
                           : m->postgres ? MANIFESTS_POSTGRES
                                         : MANIFESTS_BASE;

        if (!m->no_crds)
                buf_adds(&out, CRDS);
        if (!m->no_crds && !m->only_crds)
                buf_adds(&out, DOCUMENT);
        if (!m->only_crds)
                replace(&out, m->no_namespace ? without_namespace(text) : text, all, ARRAY_LEN(all));
        if (!buf_cstr(&out) || fputs(buf_cstr(&out), stdout) < 0 || fflush(stdout) != 0) {
                cli_error("manifests: cannot write to standard output");
                return 1;
        }
        return 0;
}

static const struct usage usage = {
        "manifests [OPTION]...",
        "Prints what a cluster needs, as deploy/ has it: the definitions of all kinds, the operator's "
        "namespace,\n"
        "account, roles and Deployment, the API's Service, network policies. docs/install.md says what they "
        "are.\n\n"
        "Examples:\n"
        "  sonde manifests | kubectl apply -f -\n"
        "  sonde manifests --crds-only | kubectl apply -f -\n"
        "  sonde manifests --namespaced ml-pipeline --image registry.example.com/sonde:0.1.0\n",
};

int cmd_manifests(int argc, char **argv)
{
        struct manifests m = {0};
        const struct option_def options[] = {
                {"namespace", 'n', "NS", "where it is installed (default: sonde-system)", OPT_STR, &m.home},
                {"namespaced", 0, "NS",
                 "only this namespace is watched, with Roles in the place of ClusterRoles", OPT_STR,
                 &m.watched},
                {"postgres", 0, "URL",
                 "finished runs are kept there, by two operators, and the API is on its own", OPT_STR,
                 &m.postgres},
                {"image", 0, "REF", "of the operator (default: " IMAGE("sonde") ")", OPT_STR, &m.image},
                {"pod-image", 0, "REF", "of what runs in pods (default: " IMAGE("sonde-pod") ")", OPT_STR,
                 &m.pod_image},
                {"ml-image", 0, "REF", "of the frameworks (default: " IMAGE("sonde-ml") ")", OPT_STR,
                 &m.ml_image},
                {"crds-only", 0, NULL, "only the definitions of the kinds", OPT_FLAG, &m.only_crds},
                {"no-crds", 0, NULL, "all but those", OPT_FLAG, &m.no_crds},
                {"no-namespace", 0, NULL, "without the Namespace, which is there", OPT_FLAG, &m.no_namespace},
                {0}};
        int code = options_parse_only(options, &usage, argc, argv);

        if (code < 0)
                code = check(&m);
        return code < 0 ? print(&m) : code;
}
