/*
 * The state of a DynamoGraphDeploymentRequest, and what follows from it.
 */
#include "kinds/dgdr/internal.h"
#include "kinds/run_internal.h"
#include "probe/probe.h"

static const char spec_is_available[] = "Generated spec is available in status.generatedDeployment";

#define DEPLOYMENT_LOOK_AGAIN (30 * USEC_PER_SEC)

/* What a decision about a request is made from, and the status that it makes. */
struct turn {
        const struct view *v;
        struct decision *d;
        struct dgdr_spec spec;
        struct run_kind kind;
        struct run run;
        struct json *status;
};

static const char *present_state(const struct view *v)
{
        return json_str_or(json_at(v->request, "status"), "state", "");
}

static bool is_final(const char *state)
{
        return streq(state, "Failed") || streq(state, "DeploymentDeleted");
}

static const char *new_state(const struct turn *t)
{
        return json_str_or(t->status, "state", "");
}

static void begin_turn(struct turn *t, const struct view *v, struct decision *d)
{
        const struct json *status = json_at(v->request, "status");

        *t = (struct turn){.v = v, .d = d, .kind = dgdr_run_kind(v)};
        dgdr_spec_read(v, &t->spec);
        run_read(v, &t->kind, &t->run);
        t->status = json_is(status, JSON_OBJECT) ? json_copy(v->arena, status) : json_object(v->arena);
        json_remove(t->status, "queue"); /* where it still waits, that is told anew */
        if (!t->run.changed)
                json_set(v->arena, t->status, "backend", json_string(v->arena, t->spec.backend));
}

static void set_state(struct turn *t, const char *state)
{
        json_set(t->v->arena, t->status, "state", json_string(t->v->arena, state));
}

static void condition(struct turn *t, const char *type, const char *value, const char *reason,
                      const char *message)
{
        decide_condition(t->v, t->status, type, value, reason, message);
}

/* ---- Ready, Progressing and Stalled, as tools read them */

static void tell_going_on(struct turn *t)
{
        condition(t, "Ready", "False", "InProgress", "the request has not been fulfilled yet");
        condition(t, "Stalled", "False", "InProgress", "the request has not been fulfilled yet");
}

static void tell_deploying(struct turn *t, const char *message)
{
        condition(t, "Ready", "False", "Deploying", message);
        condition(t, "Progressing", "True", "Deploying", message);
        condition(t, "Stalled", "False", "Deploying", message);
}

static void tell_ready(struct turn *t, const char *reason, const char *message)
{
        condition(t, "Ready", "True", reason, message);
        condition(t, "Progressing", "False", reason, message);
        condition(t, "Stalled", "False", reason, message);
}

static void end(struct turn *t, const char *state, const char *reason, const char *event, const char *message)
{
        set_state(t, state);
        condition(t, "Ready", "False", reason, message);
        condition(t, "Progressing", "False", reason, message);
        condition(t, "Stalled", "True", reason, message);
        decide_event(t->d, t->v, EVENT_WARNING, event, "%s", message);
}

/* ---- plan */

static bool is_temporary(const struct object *object)
{
        const struct json *labels = json_at(json_at(object->json, "metadata"), "labels");

        return object->type == &DGD && streq(json_str(labels, SLA_LABEL_TEMPORARY), "true");
}

/*
 * What a profiler deploys to measure it, it takes away itself. One that was killed cannot; its next attempt does that, but
 * there may be none, or not for long: so what is there while nobody profiles goes at once. Not earlier: a profiler that
 * still runs would take it for a candidate's failure.
 */
static void remove_temporary(const struct turn *t)
{
        size_t first = 0;

        while (first < t->v->n_children && !is_temporary(&t->v->children[first]))
                first++;
        if (first == t->v->n_children || !run_at_rest(t->v, t->d, &t->run))
                return;
        for (size_t i = first; i < t->v->n_children; i++)
                if (is_temporary(&t->v->children[i]))
                        decide_absent(t->d, &t->v->children[i]);
}

void dgdr_plan(const struct view *v, struct decision *d)
{
        const struct object *map;
        const char *why;
        struct turn t;

        begin_turn(&t, v, d);
        remove_temporary(&t);
        if (dgdr_plan_run(v, d, &t.run, &t.spec, &why)) {
                map = t.run.over ? view_child(v, &KUBE_CONFIGMAP, t.kind.status_map) : NULL;
                if (map) /* all that it told has been taken over */
                        decide_absent(d, map);
                return;
        }
        end(&t, "Failed", "Invalid", "ValidationFailed", why);
        d->status = t.status;
}

/* ---- the spec */

/* The spec of this generation was looked at before: accepted, or refused as a change. */
static bool was_checked(const struct view *v)
{
        const struct json *refused = view_condition(v, "SpecAccepted");
        int64_t generation = json_int(json_at(v->request, "metadata"), "generation", 0);

        return json_int(json_at(v->request, "status"), "observedGeneration", 0) == generation ||
               (json_int(refused, "observedGeneration", 0) == generation &&
                streq(json_str(refused, "reason"), "SpecChangeRejected"));
}

/* True: go on. False: look-ups are under way, or the request is refused. */
static bool check_spec(struct turn *t)
{
        const char *why = NULL;

        if (t->run.names.job && was_checked(t->v))
                return true;
        if (!dgdr_spec_check(t->v, t->d, &t->spec, !t->run.names.job || t->run.changed, &why))
                return false;
        if (why && t->run.names.job) { /* what runs goes on as it was begun */
                t->run.invalid = why;
                return true;
        }
        if (!why) {
                condition(t, "Validation", "True", "ValidationPassed", "DGDR spec validation passed");
                return true;
        }
        condition(t, "Validation", "False", "ValidationFailed", why);
        end(t, "Failed", "Invalid", "ValidationFailed", why);
        json_set(t->v->arena, t->status, "observedGeneration",
                 json_i64(t->v->arena, json_int(json_at(t->v->request, "metadata"), "generation", 0)));
        t->d->status = t->status;
        return false;
}

/* ---- what the profiler made */

static void fail_generation(struct turn *t, const char *message)
{
        condition(t, "SpecGenerated", "False", "GenerationFailed", message);
        end(t, "Failed", "GenerationFailed", "GenerationFailed", message);
}

/*
 * An object that is not the request's own is never touched: the document is refused. False: look-ups are under way, or the
 * others are made first: what stands in the way of one is told meanwhile, and it is not forgotten.
 */
static bool plan_extras(struct turn *t, const struct dgdr_output *output)
{
        const struct object *there[DGDR_EXTRAS_MAX];
        bool all = true;

        for (size_t i = 0; i < output->n_extras; i++) {
                enum run_look look;

                there[i] = run_look_up(t->v, t->d, &KUBE_CONFIGMAP, meta_str(output->extras[i], "name"),
                                       &look);
                all = all && look == LOOK_DONE;
                if (look == LOOK_FAILED)
                        decide_again_at(t->d, usec_add(t->v->now, RUN_LOOK_AGAIN));
        }
        for (size_t i = 0, n = all ? output->n_extras : 0; i < n; i++) {
                if (there[i])
                        continue;
                decide_exist(t->d, &KUBE_CONFIGMAP, output->extras[i], EXIST_ONCE);
                all = false;
        }
        for (size_t i = 0; all && i < output->n_extras; i++)
                if (!run_is_ours(t->v, there[i]->json))
                        decide_event(
                                t->d, t->v, EVENT_WARNING, "DocumentRefused",
                                "ConfigMap %s of the profiler's output is not created: there is one that "
                                "does not belong to this request",
                                there[i]->name);
        return all;
}

/* A document of another version is kept for whoever asked, and not made into what it is not. */
static bool can_apply(const struct turn *t)
{
        const char *version = json_str(json_at(t->status, "generatedDeployment"), "apiVersion");

        return t->spec.auto_apply && streq(version, kube_api_version(&DGD, t->v->arena));
}

static void tell_generated(struct turn *t, struct dgdr_output *output)
{
        struct arena *a = t->v->arena;
        const char *message = t->spec.auto_apply
                                      ? "DynamoGraphDeployment spec generated successfully"
                                      : "Generated spec is available in status.generatedDeployment";

        json_set(a, t->status, "profilingResults",
                 json_string(a, arena_printf(a, "configmap/%s", t->kind.data_map)));
        json_set(a, t->status, "generatedDeployment", output->dgd);
        condition(t, "SpecGenerated", "True", "SpecGenerated", message);
        decide_event(t->d, t->v, EVENT_NORMAL, "SpecGenerated", "%s", message);
        for (size_t i = 0; i < output->n_refused; i++)
                decide_event(t->d, t->v, EVENT_WARNING, "DocumentRefused", "%s", output->refused[i]);
        if (t->spec.auto_apply && !can_apply(t))
                decide_event(t->d, t->v, EVENT_WARNING, "DeploymentNotApplied",
                             "the generated document is of %s, and Sonde applies those of %s: apply "
                             "status.generatedDeployment by hand",
                             json_str_or(output->dgd, "apiVersion", "no version"), kube_api_version(&DGD, a));
        if (can_apply(t)) {
                set_state(t, "Deploying");
                tell_deploying(t, "the deployment is about to be created");
        } else {
                set_state(t, "Ready");
                tell_ready(t, "SpecGenerated", message);
        }
}

/* A spec that says what cannot be done with the output is waited for: the measurements are not lost to it. */
static bool hold_generation(struct turn *t)
{
        if (!t->run.invalid)
                return false;
        condition(t, "SpecGenerated", "False", "Invalid", t->run.invalid);
        condition(t, "Progressing", "False", "Invalid", t->run.invalid);
        return true;
}

/* The run has succeeded. False: look-ups are under way, or objects are made first. */
static bool generate(struct turn *t)
{
        const struct json *map;
        struct dgdr_output output;
        struct err err = ERR_INIT;
        const char *key = NULL;
        struct str text;

        if (hold_generation(t))
                return true;
        if (!run_data(t->v, t->d, t->kind.data_map, t->status, &map))
                return false;
        text = dgdr_output_text(t->v, &t->spec, map, &key, &err);
        if (!text.p) {
                fail_generation(t, run_sentence(t->v, "%s; see configmap/%s and the profiler's log", err.text,
                                                t->kind.data_map));
                return true;
        }
        if (dgdr_output_read(t->v, &t->spec, text, &output, &err) < 0) {
                fail_generation(
                        t, run_sentence(t->v, "%s in configmap/%s: %s", key, t->kind.data_map, err.text));
                return true;
        }
        if (!plan_extras(t, &output))
                return false;
        tell_generated(t, &output);
        return true;
}

/* ---- while it runs */

/* Runs of one shape take about the same time. "": what runs was begun with another spec than is there now. */
static const char *shape_of(const struct turn *t)
{
        struct arena *a = t->v->arena;
        const char *config = t->spec.config ? json_print(a, t->spec.config) : "";

        if (t->run.changed)
                return "";
        return arena_printf(a, "dgdr/%s/%s/%s", t->spec.backend, t->spec.model, name_hash(a, str_of(config)));
}

static void turn_state(struct turn *t, const struct run_seen *seen)
{
        const char *before = present_state(t->v);
        bool edited = streq(seen->reason, "Edited");

        if (seen->life == RUN_LIFE_SUSPENDED || edited || (!seen->job && !streq(before, "Profiling")))
                set_state(t, "Pending");
        else
                set_state(t, "Profiling");
        if (!*before)
                decide_event(t->d, t->v, EVENT_NORMAL, "Initialized", "DGDR initialized successfully");
        if (streq(before, "Pending") && streq(new_state(t), "Profiling"))
                decide_event(t->d, t->v, EVENT_NORMAL, "ProfilingJobCreated", "Profiling job %s created",
                             seen->names->job);
        tell_going_on(t);
}

static void fail_run(struct turn *t, const struct run_seen *seen)
{
        const char *why = seen->sentence ? seen->sentence : "the run failed and does not say why";

        end(t, "Failed", seen->reason ? seen->reason : "ProfilingFailed",
            streq(seen->reason, "Cancelled") ? "Cancelled" : "ProfilingCheckFailed", why);
}

static void settle_run(struct turn *t)
{
        const struct priors *priors = NULL;
        const char *shape = shape_of(t);
        struct run_seen seen;

        if (!check_spec(t) || !run_settle(t->v, t->d, &t->run, &seen, t->status))
                return;
        if (!run_over(&seen) && !run_priors(t->v, t->d, shape, &priors))
                return;
        dgdr_take_known_phase(t->v, &seen);
        run_progress(t->v, t->d, &seen, priors, t->status);
        dgdr_tell_progress(t->v, &seen, t->status);
        if (!run_over(&seen))
                turn_state(t, &seen);
        else if (seen.life == RUN_LIFE_FAILED)
                fail_run(t, &seen);
        else if (set_state(t, "Profiling"), !generate(t))
                return;
        if (run_over(&seen))
                t->d->row = run_row(t->v, &seen, shape);
        t->d->status = t->status;
}

/* ---- the deployment */

/* The server will not have it: the runtime has told so, with the path. Others may have been refused before. */
static const char *refusal(const struct view *v)
{
        const struct json *stalled = view_condition(v, "Stalled");
        const char *reason = json_str(stalled, "reason"), *message = json_str_or(stalled, "message", "");

        if (!streq(json_str(stalled, "status"), "True") ||
            !(streq(reason, "Refused") || streq(reason, "TooLarge")))
                return NULL;
        return strstr(message, arena_printf(v->arena, "/%s", DGD.plural)) ? message : NULL;
}

/*
 * One that is deleted before it was seen is made again: that it was made is only known from seeing it.
 */
static void create_deployment(struct turn *t, const char *name)
{
        const char *why = refusal(t->v);

        if (why) {
                condition(t, "DeploymentReady", "False", "DeploymentRejected", why);
                end(t, "Failed", "DeploymentRejected", "DeploymentCreationFailed", why);
                return;
        }
        decide_exist(t->d, &DGD, json_copy(t->v->arena, json_at(t->status, "generatedDeployment")),
                     EXIST_ONCE);
        condition(t, "DeploymentReady", "False", "DeploymentInProgress",
                  arena_printf(t->v->arena, "DGD %s is being created", name));
        set_state(t, "Deploying");
        tell_deploying(t, "the deployment is being created");
}

static void tell_deployment(struct turn *t, const struct object *dgd)
{
        struct arena *a = t->v->arena;
        const struct json *before = json_at(t->status, "deployment");
        const char *state = json_str_or(json_at(dgd->json, "status"), "state", "pending"), *message;
        bool created = json_bool(before, "created", false), good = streq(state, "successful");
        bool was_good = streq(json_str(before, "state"), "successful");
        bool degraded = was_good || streq(json_str(view_condition(t->v, "DeploymentReady"), "reason"),
                                          "DeploymentDegraded");

        if (!created)
                decide_event(t->d, t->v, EVENT_NORMAL, "DeploymentCreated", "DGD %s created", dgd->name);
        json_set(a, t->status, "deployment",
                 json_build(a, "{'name': %s, 'namespace': %s, 'state': %s, 'created': %p}", dgd->name,
                            meta_str(t->v->request, "namespace"), state, (void *)json_truth(a, true)));
        message = good ? arena_printf(a, "DGD %s is ready", dgd->name)
                       : arena_printf(a, "DGD %s is in %s state", dgd->name, state);
        if (good != was_good || (good && !created))
                decide_event(t->d, t->v, good ? EVENT_NORMAL : EVENT_WARNING,
                             good ? "DeploymentReady" : "DeploymentDegraded", "%s", message);
        set_state(t, good ? "Ready" : "Deploying");
        if (good) {
                condition(t, "DeploymentReady", "True", "DeploymentReady", message);
                tell_ready(t, "DeploymentReady", message);
        } else {
                condition(t, "DeploymentReady", "False",
                          degraded ? "DeploymentDegraded" : "DeploymentInProgress", message);
                tell_deploying(t, message);
        }
}

/* One that somebody else made under that name is not the request's. */
static bool is_ours(const struct turn *t, const struct object *dgd)
{
        const struct json *labels = json_at(json_at(dgd->json, "metadata"), "labels");

        return streq(json_str(labels, DECIDE_LABEL_REQUEST), meta_str(t->v->request, "uid"));
}

/* It was there, and the cache has none: only the server knows. False: that is not known yet. */
static bool look_for_deployment(struct turn *t, const char *name)
{
        enum run_look look;
        const struct object *found = run_look_up(t->v, t->d, &DGD, name, &look);
        const char *message;

        if (look == LOOK_FAILED)
                decide_again_at(t->d, usec_add(t->v->now, RUN_LOOK_AGAIN));
        if (look != LOOK_DONE)
                return false;
        if (found &&
            is_ours(t, found)) { /* the cache is behind, or somebody took the label that it selects by */
                decide_again_at(t->d, usec_add(t->v->now, DEPLOYMENT_LOOK_AGAIN));
                tell_deployment(t, found);
                return true;
        }
        message = run_sentence(
                t->v,
                "DGD %s was deleted; it is not created again: create another request, or apply "
                "status.generatedDeployment",
                name);
        json_remove(t->status, "deployment");
        condition(t, "DeploymentReady", "False", "DeploymentDeleted", message);
        end(t, "DeploymentDeleted", "DeploymentDeleted", "DeploymentDeleted", message);
        return true;
}

/* False: look-ups are under way. */
static bool follow_deployment(struct turn *t)
{
        const char *name = meta_str(json_at(t->status, "generatedDeployment"), "name");
        const struct object *dgd = name ? view_child(t->v, &DGD, name) : NULL;

        if (dgd)
                tell_deployment(t, dgd);
        else if (json_bool(json_at(t->status, "deployment"), "created", false))
                return look_for_deployment(t, name);
        else if (name)
                create_deployment(t, name);
        return true;
}

/* What is to become of the output was changed while that could still be heard of. */
static bool must_generate(const struct turn *t, const char *state)
{
        bool deployed = json_at(t->status, "deployment") || view_child(t->v, &DGD, t->spec.deployment);

        return streq(state, "Profiling") ||
               (t->run.names.job && !deployed && !was_checked(t->v) && !t->run.invalid && !t->run.changed);
}

static void settle_after(struct turn *t)
{
        const char *state = present_state(t->v);

        if (t->run.names.job && !check_spec(t))
                return;
        run_settle_spec(t->v, t->d, &t->run, t->status);
        if (must_generate(t, state) && !generate(t))
                return;
        state = new_state(t);
        if (is_final(state)) {
                t->d->status = t->status;
                return;
        }
        if (json_at(t->status, "deployment") || can_apply(t)) {
                if (!streq(state, "Profiling") && !follow_deployment(t))
                        return;
        } else if (!streq(state, "Profiling")) {
                set_state(t, "Ready");
                tell_ready(t, "SpecGenerated", spec_is_available);
        }
        t->d->status = t->status;
}

void dgdr_settle(const struct view *v, struct decision *d)
{
        const char *state = present_state(v);
        struct turn t;

        if (d->status || is_final(state))
                return;
        begin_turn(&t, v, d);
        if (t.run.over || streq(state, "Ready") ||
            streq(state, "Deploying")) /* by another controller's run */
                settle_after(&t);
        else
                settle_run(&t);
}

/* ---- what of it is kept */

void dgdr_project_dgd(struct json *dgd, struct arena *a)
{
        const char *state = json_str(json_at(dgd, "status"), "state");

        json_remove(dgd, "spec");
        json_set(a, dgd, "status", json_build(a, "{'state': %p}", (void *)json_string(a, state)));
}
