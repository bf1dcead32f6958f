#include "unit/dir.h"

#include "kube/config.h"

/* ---- a folder of files */

struct fixture {
        char dir[UNIT_DIR_LEN];
        struct arena arena;
        struct kube_config config;
        struct err err;
};

static int set_up(void **state)
{
        struct fixture *f = xcalloc(1, sizeof(*f));

        unit_dir(f->dir);
        *state = f;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *f = *state;

        kube_config_done(&f->config);
        arena_done(&f->arena);
        free(f);
        return 0;
}

static const char *path_in(struct fixture *f, const char *name)
{
        return arena_printf(&f->arena, "%s/%s", f->dir, name);
}

static const char *write_file(struct fixture *f, const char *name, const char *text)
{
        const char *path = path_in(f, name);

        assert_int_equal(file_replace(path, str_of(text), 0600, NULL), 0);
        return path;
}

static void parse(struct fixture *f, const char *text, const char *context)
{
        kube_config_done(&f->config);
        if (kube_config_parse(str_of(text), "/dir", context, &f->config, &f->err) < 0)
                fail_msg("%s", f->err.text);
}

static void assert_refused(struct fixture *f, const char *text, const char *message)
{
        struct kube_config none = {0};

        assert_true(kube_config_parse(str_of(text), "/dir", NULL, &none, &f->err) < 0);
        assert_string_equal(f->err.text, message);
        assert_int_equal(f->err.code, E_CONFIG);
        assert_null(none.server);
}

static void load(struct fixture *f, const struct kube_config_sources *sources)
{
        kube_config_done(&f->config);
        if (kube_config_load(sources, &f->config, &f->err) < 0)
                fail_msg("%s", f->err.text);
}

static void assert_load_fails(struct fixture *f, const struct kube_config_sources *sources,
                              const char *message)
{
        struct kube_config none = {0};

        assert_true(kube_config_load(sources, &none, &f->err) < 0);
        assert_string_equal(f->err.text, message);
}

/* ---- one file */

static const char whole[] = "apiVersion: v1\n"
                            "kind: Config\n"
                            "current-context: prod\n"
                            "preferences: {}\n"
                            "clusters:\n"
                            "- name: east\n"
                            "  cluster:\n"
                            "    server: https://east.example:6443\n"
                            "    certificate-authority-data: Q0EgUEVNCg==\n"
                            "    tls-server-name: api.east\n"
                            "    proxy-url: http://proxy:3128\n"
                            "- name: west\n"
                            "  cluster:\n"
                            "    server: https://[fd00::1]:6443\n"
                            "    certificate-authority: pki/ca.crt\n"
                            "- name: open\n"
                            "  cluster: {server: 'http://127.0.0.1:8080'}\n"
                            "- name: careless\n"
                            "  cluster: {server: 'https://x', insecure-skip-tls-verify: true}\n"
                            "contexts:\n"
                            "- name: prod\n"
                            "  context: {cluster: east, user: alice, namespace: team-a}\n"
                            "- name: files\n"
                            "  context: {cluster: west, user: bob}\n"
                            "- name: basic\n"
                            "  context: {cluster: careless, user: carol}\n"
                            "- name: anonymous\n"
                            "  context: {cluster: open}\n"
                            "users:\n"
                            "- name: alice\n"
                            "  user:\n"
                            "    client-certificate-data: Q0VSVA==\n"
                            "    client-key-data: S0VZ\n"
                            "    token: t0ken\n"
                            "- name: bob\n"
                            "  user:\n"
                            "    client-certificate: /abs/bob.crt\n"
                            "    client-key: pki/bob.key\n"
                            "    tokenFile: token\n"
                            "- name: carol\n"
                            "  user: {username: carol, password: pass}\n";

static void test_inline_data_of_the_current_context(void **state)
{
        struct fixture *f = *state;
        const struct kube_config *c = &f->config;

        parse(f, whole, NULL);
        assert_string_equal(c->context, "prod");
        assert_string_equal(c->source, "context prod of the given text");
        assert_string_equal(c->server, "https://east.example:6443");
        assert_string_equal(c->ns, "team-a");
        assert_string_equal(c->ca, "CA PEM\n");
        assert_string_equal(c->tls_server_name, "api.east");
        assert_string_equal(c->proxy, "http://proxy:3128");
        assert_string_equal(c->cert, "CERT");
        assert_string_equal(c->key, "KEY");
        assert_string_equal(c->token, "t0ken");
        assert_false(c->insecure);
        assert_null(c->ca_file);
        assert_null(c->cert_file);
        assert_null(c->key_file);
        assert_null(c->token_file);
        assert_null(c->exec);
}

static void test_files_are_relative_to_the_kubeconfig(void **state)
{
        struct fixture *f = *state;
        const struct kube_config *c = &f->config;

        parse(f, whole, "files");
        assert_string_equal(c->ca_file, "/dir/pki/ca.crt");
        assert_string_equal(c->cert_file, "/abs/bob.crt");
        assert_string_equal(c->key_file, "/dir/pki/bob.key");
        assert_string_equal(c->token_file, "/dir/token");
        assert_string_equal(c->ns, "default");
        assert_null(c->ca);
        assert_null(c->cert);
        assert_null(c->key);
        assert_null(c->token);
}

static void test_a_password_and_no_user(void **state)
{
        struct fixture *f = *state;

        parse(f, whole, "basic");
        assert_string_equal(f->config.username, "carol");
        assert_string_equal(f->config.password, "pass");
        assert_true(f->config.insecure);
        parse(f, whole, "anonymous");
        assert_null(f->config.username);
        assert_string_equal(f->config.server, "http://127.0.0.1:8080");
}

#define CLUSTER                                                   \
        "current-context: c\n"                                    \
        "contexts: [{name: c, context: {cluster: k, user: u}}]\n" \
        "clusters: [{name: k, cluster: {server: 'https://k'}}]\n"

static void test_inline_wins_over_a_file(void **state)
{
        struct fixture *f = *state;

        parse(f,
              "current-context: c\n"
              "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
              "clusters: [{name: k, cluster: {server: 'https://k', certificate-authority: /f, "
              "certificate-authority-data: QQ==}}]\n"
              "users: [{name: u, user: {client-certificate: /f, client-certificate-data: QQ==, client-key: "
              "/f, "
              "client-key-data: QQ==, token: t, tokenFile: /tok}}]\n",
              NULL);
        assert_string_equal(f->config.ca, "A");
        assert_null(f->config.ca_file);
        assert_null(f->config.cert_file);
        assert_null(f->config.key_file);
        /* with tokens the file wins: both are kept for whoever asks */
        assert_string_equal(f->config.token_file, "/tok");
}

static void test_json_is_yaml(void **state)
{
        struct fixture *f = *state;

        parse(f,
              "{\"kind\":\"Config\",\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":"
              "{\"cluster\":\"k\"}}],\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":\"https://k\"}}],"
              "\"users\":null}",
              NULL);
        assert_string_equal(f->config.server, "https://k");
}

static void test_exec(void **state)
{
        struct fixture *f = *state;
        const struct kube_exec *e;

        parse(f,
              "current-context: c\n"
              "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
              "clusters:\n"
              "- name: k\n"
              "  cluster:\n"
              "    server: https://k\n"
              "    extensions:\n"
              "    - {name: other, extension: 1}\n"
              "    - {name: client.authentication.k8s.io/exec, extension: {audience: x, m: 1.50}}\n"
              "users:\n"
              "- name: u\n"
              "  user:\n"
              "    exec:\n"
              "      apiVersion: client.authentication.k8s.io/v1\n"
              "      command: ./bin/login\n"
              "      args: [get-token, '--cluster', 'a b; rm -rf /']\n"
              "      env: [{name: PROFILE, value: prod}, {name: EMPTY}]\n"
              "      installHint: get it from example.com\n"
              "      interactiveMode: IfAvailable\n"
              "      provideClusterInfo: true\n",
              NULL);
        e = f->config.exec;
        assert_non_null(e);
        assert_string_equal(e->api_version, "client.authentication.k8s.io/v1");
        assert_string_equal(e->command, "/dir/./bin/login");
        assert_string_equal(e->args[0], "get-token");
        assert_string_equal(e->args[2], "a b; rm -rf /");
        assert_null(e->args[3]);
        assert_string_equal(e->env[0], "PROFILE=prod");
        assert_string_equal(e->env[1], "EMPTY=");
        assert_null(e->env[2]);
        assert_string_equal(e->install_hint, "get it from example.com");
        assert_true(e->provide_cluster_info);
        assert_string_equal(e->cluster_config, "{\"audience\":\"x\",\"m\":1.50}");
}

static void test_exec_command_without_a_slash_is_looked_up_in_path(void **state)
{
        struct fixture *f = *state;
        static const char *const versions[] = {"v1", "v1beta1", "v1alpha1"};

        for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
                parse(f,
                      arena_printf(&f->arena,
                                   CLUSTER "users: [{name: u, user: {exec: {command: aws, apiVersion: "
                                           "client.authentication.k8s.io/%s}}}]\n",
                                   versions[i]),
                      NULL);
                assert_string_equal(f->config.exec->command, "aws");
                assert_null(f->config.exec->args);
                assert_null(f->config.exec->env);
        }
}

/* ---- what is wrong is said with its place */

static void test_messages_name_the_place(void **state)
{
        struct fixture *f = *state;

        assert_refused(f,
                       "current-context: prod\n"
                       "clusters: [{name: k, cluster: {server: 'https://k'}}]\n"
                       "contexts:\n"
                       "- name: prod\n"
                       "  context:\n"
                       "    cluster: k\n"
                       "    user: bob\n",
                       "kubeconfig (text):7:11: context 'prod' names user 'bob', who is not there");
        assert_refused(f, "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n",
                       "kubeconfig (text):2:41: context 'c' names cluster 'k', which is not there");
        assert_refused(f, "current-context: c\ncontexts: [{name: c}]\n",
                       "kubeconfig (text):2:12: context 'c' names no cluster");
        assert_refused(f, "current-context: nope\ncontexts:\n- name: c\n",
                       "kubeconfig (text):3:1: there is no context 'nope'");
        assert_refused(f, "contexts: []\n", "kubeconfig (text): there is no current-context; pass --context");
        assert_refused(f, "", "kubeconfig (text): there is no current-context; pass --context");
        assert_refused(f, "- a\n", "kubeconfig (text):1:1: this is no kubeconfig, but an array");
        assert_refused(f, "kind: Deployment\n",
                       "kubeconfig (text):1:7: this is no kubeconfig, but a Deployment");
        assert_refused(f, "a: 1\n---\nb: 2\n", "kubeconfig (text):3:1: there must be one document, not 2");
        assert_refused(f, "current-context: [c]\n",
                       "kubeconfig (text):1:18: 'current-context' is an array, but must be a string");
        assert_refused(f, "current-context: 7\n",
                       "kubeconfig (text):1:18: 'current-context' is a number, but must be a string: put it "
                       "in quotes");
        assert_refused(f, "current-context: c\ncontexts: {}\n",
                       "kubeconfig (text):2:11: 'contexts' is an object, but must be an array");
        assert_refused(f, "current-context: c\ncontexts: [c]\n",
                       "kubeconfig (text):2:12: an element of 'contexts' must be an object");
        assert_refused(f, "current-context: c\ncontexts: [{name: c}, {name: c}]\n",
                       "kubeconfig (text):2:23: context 'c' is there twice");
}

static void test_a_syntax_error_names_the_place(void **state)
{
        struct fixture *f = *state;

        assert_true(kube_config_parse(STR("a: b\nc: {d\n"), NULL, NULL, &f->config, &f->err) < 0);
        assert_true(str_has_prefix(str_of(f->err.text), STR("kubeconfig (text):3:1: ")));
        assert_int_equal(f->err.code, E_CONFIG);
        assert_true(kube_config_parse(STR("a: b\na: c\n"), NULL, NULL, &f->config, &f->err) < 0);
        assert_true(str_has_prefix(str_of(f->err.text), STR("kubeconfig (text):2:1: ")));
}

static void test_clusters_that_are_refused(void **state)
{
        struct fixture *f = *state;
        static const struct {
                const char *cluster, *message;
        } cases[] = {
                {"{}", "2:31: the cluster has no 'server'"},
                {"{server: ''}", "2:31: the cluster has no 'server'"},
                {"{server: 8080}", "2:40: 'server' is a number, but must be a string: put it in quotes"},
                {"{server: 'https://k', certificate-authority-data: '!!'}",
                 "2:81: 'certificate-authority-data' is not valid base64"},
                {"{server: 'https://k', certificate-authority-data: 'AAAA'}",
                 "2:81: 'certificate-authority-data' is no PEM text"},
                {"{server: 'https://k', insecure-skip-tls-verify: 'true'}",
                 "2:79: 'insecure-skip-tls-verify' is a string, but must be a boolean"},
                {"{server: 'https://k', insecure-skip-tls-verify: true, certificate-authority: /ca}",
                 "2:31: a certificate authority and insecure-skip-tls-verify exclude each other"},
                {"{server: \"https://k\\0\"}", "2:40: 'server' holds a NUL byte"},
                {"{server: 'https://u:p@k'}", "2:40: 'server': a user in the URL is not supported"},
                {"{server: 'https://k', proxy-url: 'https://p'}",
                 "2:64: 'proxy-url': proxies are spoken to by http:// only"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_refused(f,
                               arena_printf(&f->arena,
                                            "current-context: c\n"
                                            "clusters: [{name: k, cluster: %s}]\n"
                                            "contexts: [{name: c, context: {cluster: k}}]\n",
                                            cases[i].cluster),
                               arena_printf(&f->arena, "kubeconfig (text):%s", cases[i].message));
        /* other schemes: the text is the URL parser's */
        assert_true(kube_config_parse(STR("current-context: c\n"
                                          "clusters: [{name: k, cluster: {server: 'https://k', proxy-url: "
                                          "'socks5://p'}}]\n"
                                          "contexts: [{name: c, context: {cluster: k}}]\n"),
                                      NULL, NULL, &f->config, &f->err) < 0);
        assert_true(str_has_prefix(str_of(f->err.text), STR("kubeconfig (text):2:64: 'proxy-url': ")));
}

static void test_users_that_are_refused(void **state)
{
        struct fixture *f = *state;
        static const struct {
                const char *user, *message;
        } cases[] = {
                {"{token: 123}", "4:33: 'token' is a number, but must be a string: put it in quotes"},
                {"{client-certificate: /c}", "4:25: the user has a client-certificate but no client-key"},
                {"{client-key-data: QQ==}", "4:25: the user has a client-key but no client-certificate"},
                {"{token: t, username: u}",
                 "4:25: the user has both a token and a password: only one is allowed"},
                {"{auth-provider: {name: gcp}}",
                 "4:41: 'auth-provider': Kubernetes has removed it: use an exec plugin (kubelogin, "
                 "gke-gcloud-auth-plugin)"},
                {"{as: admin, token: t}", "4:30: 'as': impersonation is not supported"},
                {"{as-groups: ['system:masters']}", "4:37: 'as-groups': impersonation is not supported"},
                {"{exec: login}", "4:32: 'exec' is a string, but must be an object"},
                {"{exec: {apiVersion: client.authentication.k8s.io/v1}}",
                 "4:32: the exec plugin has no 'command'"},
                {"{exec: {command: x}}",
                 "4:32: apiVersion '' of the exec plugin is not known; it may be "
                 "client.authentication.k8s.io/v1, "
                 "client.authentication.k8s.io/v1beta1 or client.authentication.k8s.io/v1alpha1"},
                {"{exec: {command: x, apiVersion: v9}}",
                 "4:57: apiVersion 'v9' of the exec plugin is not known; it may be "
                 "client.authentication.k8s.io/v1, "
                 "client.authentication.k8s.io/v1beta1 or client.authentication.k8s.io/v1alpha1"},
                {"{exec: {command: x, apiVersion: client.authentication.k8s.io/v1, args: [1]}}",
                 "4:97: an element of 'args' must be a string: put it in quotes"},
                {"{exec: {command: x, apiVersion: client.authentication.k8s.io/v1, env: [{name: "
                 "'A=B'}]}}",
                 "4:96: an element of 'env' needs a name without '='"},
                {"{exec: {command: x, apiVersion: client.authentication.k8s.io/v1, env: [x]}}",
                 "4:96: an element of 'env' needs a name without '='"},
                {"{exec: {command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: "
                 "Always}}",
                 "4:107: the exec plugin wants a terminal (interactiveMode Always), but plugins run "
                 "without one"},
                {"{exec: {command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: "
                 "Maybe}}",
                 "4:107: interactiveMode 'Maybe' must be Never, IfAvailable or Always"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_refused(
                        f, arena_printf(&f->arena, CLUSTER "users: [{name: u, user: %s}]\n", cases[i].user),
                        arena_printf(&f->arena, "kubeconfig (text):%s", cases[i].message));
}

static void test_nulls_and_empty_strings_are_absent(void **state)
{
        struct fixture *f = *state;

        parse(f,
              "current-context: c\n"
              "contexts: [{name: c, context: {cluster: k, user: '', namespace: ''}}]\n"
              "clusters: [{name: k, cluster: {server: 'https://k', certificate-authority-data: '', "
              "proxy-url: null}}]\n"
              "users: null\n",
              NULL);
        assert_string_equal(f->config.ns, "default");
        assert_null(f->config.ca);
        assert_null(f->config.proxy);
        parse(f, CLUSTER "users: [{name: u}]\n", NULL);
        assert_null(f->config.token);
        parse(f, CLUSTER "users: [{name: u, user: {token: '', auth-provider: null, exec: null}}]\n", NULL);
        assert_null(f->config.exec);
}

/* ---- several files */

static void test_kubeconfig_flag_comes_first(void **state)
{
        struct fixture *f = *state;
        const char *flag = write_file(f, "flag", whole), *env = write_file(f, "env", "x: [");

        load(f, &(struct kube_config_sources){.kubeconfig = flag, .env_kubeconfig = env, .ns = "mine"});
        assert_string_equal(f->config.ns, "mine");
        assert_string_equal(f->config.source, arena_printf(&f->arena, "context prod of %s", flag));
        load(f, &(struct kube_config_sources){.kubeconfig = flag, .context = "files"});
        assert_string_equal(f->config.ca_file, path_in(f, "pki/ca.crt"));
        assert_load_fails(f, &(struct kube_config_sources){.kubeconfig = path_in(f, "none")},
                          arena_printf(&f->arena, "kubeconfig %s is not there", path_in(f, "none")));
}

static void test_files_of_the_environment_are_merged(void **state)
{
        struct fixture *f = *state;
        const char *one = write_file(f, "one",
                                     "contexts: [{name: c, context: {cluster: k, user: u, namespace: one}}]\n"
                                     "users: [{name: u, user: {token: first}}]\n");
        const char *two, *list;

        assert_int_equal(mkdir(path_in(f, "sub"), 0700), 0);
        two = write_file(f, "sub/two",
                         "current-context: c\n"
                         "contexts: [{name: c, context: {cluster: other, namespace: two}}]\n"
                         "clusters: [{name: k, cluster: {server: 'https://k', certificate-authority: ca}}]\n"
                         "users: [{name: u, user: {token: second, client-certificate: c, client-key: k}}]\n");
        write_file(f, "empty", "");
        list = arena_printf(&f->arena, "%s:%s::%s:%s:%s", path_in(f, "missing"), path_in(f, "empty"), one,
                            two, one);
        load(f, &(struct kube_config_sources){.env_kubeconfig = list});
        assert_string_equal(f->config.ns, "one");
        assert_string_equal(f->config.token, "first");
        assert_null(f->config.cert_file); /* nothing of the second file's user */
        assert_string_equal(f->config.ca_file, path_in(f, "sub/ca"));
        assert_string_equal(f->config.source, arena_printf(&f->arena, "context c of %s", one));
}

static void test_the_first_current_context_wins(void **state)
{
        struct fixture *f = *state;
        const char *one = write_file(f, "one", "current-context: ''\n");
        const char *two = write_file(f, "two", "current-context: anonymous\n");
        const char *three = write_file(f, "three", whole);

        load(f, &(struct kube_config_sources){
                        .env_kubeconfig = arena_printf(&f->arena, "%s:%s:%s", one, two, three)});
        assert_string_equal(f->config.context, "anonymous");
}

static void test_messages_name_the_file_that_is_wrong(void **state)
{
        struct fixture *f = *state;
        const char *one = write_file(f, "one",
                                     "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n");
        const char *two = write_file(f, "two", "clusters:\n- name: k\n  cluster: {server: 1}\n");

        assert_load_fails(
                f,
                &(struct kube_config_sources){.env_kubeconfig = arena_printf(&f->arena, "%s:%s", one, two)},
                arena_printf(&f->arena,
                             "kubeconfig %s:3:21: 'server' is a number, but must be a string: put "
                             "it in quotes",
                             two));
        assert_load_fails(f, &(struct kube_config_sources){.env_kubeconfig = "/nonexistent/a:/nonexistent/b"},
                          "none of the files that KUBECONFIG names is there: /nonexistent/a:/nonexistent/b");
}

static void test_a_file_that_is_too_large_is_refused(void **state)
{
        struct fixture *f = *state;
        char *big = arena_alloc(&f->arena, (4 << 20) + 2);
        const char *path;

        memset(big, '#', (4 << 20) + 1);
        big[(4 << 20) + 1] = '\0';
        path = write_file(f, "big", big);
        assert_load_fails(f, &(struct kube_config_sources){.kubeconfig = path},
                          arena_printf(&f->arena, "kubeconfig: %s is larger than 4194304 bytes", path));
        assert_int_equal(f->err.code, E_TOO_LARGE);
}

static void test_home_comes_last(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(mkdir(path_in(f, ".kube"), 0700), 0);
        write_file(f, ".kube/config", whole);
        load(f, &(struct kube_config_sources){.home = f->dir, .env_kubeconfig = ""});
        assert_string_equal(f->config.context, "prod");
        assert_load_fails(f, &(struct kube_config_sources){.home = "/nonexistent"},
                          "kubeconfig /nonexistent/.kube/config is not there, KUBECONFIG is not set, and "
                          "this is no "
                          "pod; pass --kubeconfig");
}

static void test_the_insecure_flag_replaces_the_authority(void **state)
{
        struct fixture *f = *state;

        load(f, &(struct kube_config_sources){.kubeconfig = write_file(f, "c", whole), .insecure = true});
        assert_true(f->config.insecure);
        assert_null(f->config.ca);
        assert_null(f->config.ca_file);
}

/* ---- inside a pod */

static void test_service_account(void **state)
{
        struct fixture *f = *state;
        struct kube_config_sources s = {.service_host = "10.0.0.1",
                                        .service_port = "443",
                                        .account_dir = f->dir,
                                        .home = "/nonexistent"};

        assert_load_fails(f, &s,
                          "kubeconfig /nonexistent/.kube/config is not there, KUBECONFIG is not set, and "
                          "this is no "
                          "pod; pass --kubeconfig");
        write_file(f, "token", "t");
        load(f, &s);
        assert_string_equal(f->config.source, "service account");
        assert_string_equal(f->config.server, "https://10.0.0.1:443");
        assert_string_equal(f->config.token_file, path_in(f, "token"));
        assert_string_equal(f->config.ca_file, path_in(f, "ca.crt"));
        assert_string_equal(f->config.ns, "default");
        assert_null(f->config.token);

        write_file(f, "namespace", "team-b\n");
        load(f, &s);
        assert_string_equal(f->config.ns, "team-b");
        s.ns = "mine";
        load(f, &s);
        assert_string_equal(f->config.ns, "mine");

        s.service_host = "fd00::1";
        load(f, &s);
        assert_string_equal(f->config.server, "https://[fd00::1]:443");
}

static void test_service_account_comes_after_kubeconfig_and_before_home(void **state)
{
        struct fixture *f = *state;
        struct kube_config_sources s = {
                .service_host = "10.0.0.1", .service_port = "443", .account_dir = f->dir, .home = f->dir};

        write_file(f, "token", "t");
        assert_int_equal(mkdir(path_in(f, ".kube"), 0700), 0);
        write_file(f, ".kube/config", whole);
        load(f, &s);
        assert_string_equal(f->config.source, "service account");
        s.context = "anonymous"; /* a context can only be a kubeconfig's */
        load(f, &s);
        assert_string_equal(f->config.server, "http://127.0.0.1:8080");
        s.context = NULL;
        s.env_kubeconfig = write_file(f, "env", whole);
        load(f, &s);
        assert_string_equal(f->config.context, "prod");
}

static void test_service_account_that_is_wrong(void **state)
{
        struct fixture *f = *state;
        struct kube_config_sources s = {
                .service_host = "10.0.0.1", .service_port = "443", .account_dir = f->dir};

        write_file(f, "token", "t");
        write_file(f, "namespace", "../etc");
        assert_load_fails(
                f, &s, arena_printf(&f->arena, "service account: %s/namespace holds no namespace", f->dir));
        s.insecure = true;
        assert_load_fails(f, &s,
                          "inside a cluster the API server is always verified; leave out "
                          "--insecure-skip-tls-verify");
        s = (struct kube_config_sources){.service_host = "a b", .service_port = "x", .account_dir = f->dir};
        assert_true(kube_config_load(&s, &f->config, &f->err) < 0);
        assert_true(str_has_prefix(str_of(f->err.text),
                                   STR("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: ")));
}

static void test_environment(void **state)
{
        struct kube_config_sources s = {.context = "c"};

        setenv("KUBECONFIG", "/a:/b", 1);
        setenv("KUBERNETES_SERVICE_HOST", "h", 1);
        setenv("KUBERNETES_SERVICE_PORT", "1", 1);
        setenv("HOME", "/root", 1);
        kube_config_from_env(&s);
        assert_string_equal(s.env_kubeconfig, "/a:/b");
        assert_string_equal(s.service_host, "h");
        assert_string_equal(s.service_port, "1");
        assert_string_equal(s.home, "/root");
        assert_string_equal(s.context, "c");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
        TEST(test_inline_data_of_the_current_context),
        TEST(test_files_are_relative_to_the_kubeconfig),
        TEST(test_a_password_and_no_user),
        TEST(test_inline_wins_over_a_file),
        TEST(test_json_is_yaml),
        TEST(test_exec),
        TEST(test_exec_command_without_a_slash_is_looked_up_in_path),
        TEST(test_messages_name_the_place),
        TEST(test_a_syntax_error_names_the_place),
        TEST(test_clusters_that_are_refused),
        TEST(test_users_that_are_refused),
        TEST(test_nulls_and_empty_strings_are_absent),
        TEST(test_kubeconfig_flag_comes_first),
        TEST(test_files_of_the_environment_are_merged),
        TEST(test_the_first_current_context_wins),
        TEST(test_messages_name_the_file_that_is_wrong),
        TEST(test_a_file_that_is_too_large_is_refused),
        TEST(test_home_comes_last),
        TEST(test_the_insecure_flag_replaces_the_authority),
        TEST(test_service_account),
        TEST(test_service_account_comes_after_kubeconfig_and_before_home),
        TEST(test_service_account_that_is_wrong),
        TEST(test_environment),
};

UNIT_MAIN(tests)
