/*
 * The table of endpoints as OpenAPI 3.1.
 */
#include "web/internal.h"

/*
 * What comes back: members as "name:type", a type being string, integer, number, boolean, object, any, or the name of another
 * one of these; '?' behind it: it may be null; '[]': a list of them; '!' behind the name: it is always there.
 */
static const struct {
        const char *name, *members;
} schemas[] = {
        {"Health", "status!:string database!:object version:string"},
        {"Ready", "status!:string"},
        {"Message", "message!:string"},
        {"Session", "authenticated!:boolean"},
        {"Eta", "low:string mid:string high:string"},
        {"Run",
         "kind!:string resource!:string namespace!:string name!:string uid!:string life!:string "
         "state!:string phase!:string phaseNumber:integer totalPhases:integer currentStep:integer "
         "totalSteps:integer percent:number message:string bestSoFar:string reason:string sentence:string "
         "queuePosition:string expectedStart:string attempt:integer createdAt:string startedAt:string "
         "updatedAt:string "
         "endedAt:string eta:Eta labels:object usage:object priority:integer notMoving:boolean "
         "simulated:boolean deleting:boolean"},
        {"RunList", "items!:Run[]"},
        {"RunDetail", "run!:Run object!:object"},
        {"Event", "time:string? type!:string reason!:string message!:string count!:integer"},
        {"EventList", "items!:Event[]"},
        {"TrackPhase",
         "name!:string beganAt:string endedAt:string seconds:number steps:integer totalSteps:integer"},
        {"Track", "startedAt:string endedAt:string phases!:TrackPhase[]"},
        {"RunData", "files!:object leftOut:string[] status:object track:Track"},
        {"Measure",
         "series!:string algorithm!:string inputSize!:integer n!:integer seconds:number low:number "
         "high:number memoryBytes:number cpuCores:number cost:number"},
        {"HistoryRow",
         "kind!:string namespace!:string name!:string uid!:string attempt!:integer "
         "outcome!:string startedAt:string finishedAt:string shape:string labels:object "
         "machine:object image:string specHash:string measures:Measure[] phases:TrackPhase[] samples:any"},
        {"HistoryList", "items!:HistoryRow[]"},
        {"Point", "uid!:string namespace!:string name!:string kind!:string attempt!:integer "
                  "finishedAt:string? value!:number low:number high:number"},
        {"Change", "degraded!:boolean index!:integer goodFrom!:integer before:number after:number "
                   "ratio:number low:number high:number"},
        {"Trend", "series!:string points!:Point[] changes!:Change[]"},
        {"Waiting", "resource!:string namespace!:string name!:string position:integer? priority:integer "
                    "expectedStart:string "
                    "since:string? reason:string?"},
        {"Quota", "namespace!:string name!:string hard:object used:object"},
        {"Queue", "items!:Waiting[] limits:object quotas:Quota[]"},
        {"Job", "id!:integer job_id!:string algorithm_name!:string input_size!:integer? parameters:object? "
                "status!:string priority!:integer created_at!:string? updated_at!:string? started_at:string? "
                "completed_at:string? worker_id:string? error_message:string? namespace!:string name!:string "
                "uid!:string percent:number"},
        {"JobList", "jobs!:Job[] total!:integer page!:integer per_page!:integer total_pages!:integer"},
        {"Result", "id!:integer job_id!:integer algorithm_name!:string input_size:integer? "
                   "execution_time:number? memory_usage:number? cpu_usage:number? iterations:integer? "
                   "parameters:object? result_metadata:object? timestamp:string?"},
        {"Worker", "id!:integer worker_id!:string hostname!:string ip_address:string? cpu_count:integer? "
                   "memory_total:number? status!:string last_heartbeat:string? created_at:string? "
                   "worker_metadata:object"},
        {"WorkerUse", "id!:integer worker_id!:string timestamp!:string cpu_usage:number? "
                      "memory_usage:number? disk_usage:number? network_in:number? network_out:number? "
                      "active_jobs:integer?"},
        {"Versus", "tested!:boolean interleaved!:boolean baseline!:string runs!:object[] pairs:object[] "
                   "noiseFloor:number fastest:object summary:string figures:object[] notes:string[]"},
        {"ComparisonCreated",
         "comparison_id!:string algorithms!:string[] input_size!:integer status!:string"},
        {"Algorithm", "name!:string description!:string category!:string parameters!:object"},
        {"Selection", "job_id!:string algorithm_name!:string framework!:string execution_time:number? "
                      "memory_usage:number? cpu_usage:number? selected_features_count:integer? "
                      "status!:string error_message:string"},
        {"Training", "job_id!:string algorithm_name!:string framework!:string execution_time:number? "
                     "memory_usage:number? cpu_usage:number? accuracy:number? status!:string "
                     "error_message:string"},
        {"Tuning", "job_id!:string algorithm_name!:string framework!:string execution_time:number? "
                   "memory_usage:number? cpu_usage:number? accuracy:number? best_params:object? "
                   "status!:string error_message:string"},
        {"FrameworkResult",
         "framework:string? algorithm_name!:string execution_time:number? memory_usage:number? "
         "cpu_usage:number? accuracy:number? selected_features_count:integer? best_params:object? "
         "error_message:string"},
        {"FrameworksCompared", "job_id!:string comparison_id!:string algorithm!:string dataset_size!:integer "
                               "n_features!:integer results!:FrameworkResult[] status!:string "
                               "error_message:string"},
        {"MlSummary", "total_runs:integer frameworks_used:string[] algorithms_profiled:string[] "
                      "performance_summary:object message:string"},
        {"Frameworks", "available_frameworks!:string[] all_frameworks!:object"},
        {"Error", "detail!:any"},
};

static struct json *type_schema(struct arena *a, struct str type)
{
        static const char *const plain[] = {"string", "integer", "number", "boolean", "object"};
        bool nullable = str_has_suffix(type, STR("?"));

        if (nullable)
                type.n--;
        if (str_has_suffix(type, STR("[]")))
                return json_build(a, "{'type': 'array', 'items': %p}",
                                  (void *)type_schema(a, str_n(type.p, type.n - 2)));
        if (str_eq(type, STR("any")))
                return json_object(a);
        for (size_t i = 0; i < ARRAY_LEN(plain); i++)
                if (str_eq(type, str_of(plain[i])))
                        return nullable ? json_build(a, "{'type': [%s, 'null']}", plain[i])
                                        : json_build(a, "{'type': %s}", plain[i]);
        return json_build(a, "{'$ref': '#/components/schemas/%.*s'}", STR_ARG(type));
}

static struct json *schema(struct arena *a, const char *members)
{
        struct json *properties = json_object(a), *required = json_array(a);
        struct str rest = str_of(members);

        while (rest.n) {
                struct str type = str_split(&rest, ' '), name = str_split(&type, ':');

                if (str_has_suffix(name, STR("!"))) {
                        name.n--;
                        json_append(required, json_stringn(a, name));
                }
                json_setn(a, properties, str_n(arena_strndup(a, name.p, name.n), name.n),
                          type_schema(a, type));
        }
        return json_build(a, "{'type': 'object', 'properties': %p, 'required': %p}", (void *)properties,
                          (void *)(json_first(required) ? required : NULL));
}

/* ---- parameters and bodies */

static struct json *field_schema(struct arena *a, const struct field *f)
{
        static const char *const types[] = {
                [FIELD_STRING] = "string", [FIELD_INTEGER] = "integer", [FIELD_BOOLEAN] = "boolean",
                [FIELD_OBJECT] = "object", [FIELD_STRINGS] = "array",   [FIELD_OBJECTS] = "array",
        };
        bool list = f->type == FIELD_STRINGS || f->type == FIELD_OBJECTS;
        struct json *s = f->nullable ? json_build(a, "{'type': [%s, 'null']}", types[f->type])
                                     : json_build(a, "{'type': %s}", types[f->type]);

        if (list)
                json_set(a, s, "items",
                         json_build(a, "{'type': %s}", f->type == FIELD_STRINGS ? "string" : "object"));
        if (f->least || f->most)
                json_set(a, s, list ? "minItems" : "minimum", json_i64(a, f->least));
        if (f->most)
                json_set(a, s, list ? "maxItems" : "maximum", json_i64(a, f->most));
        if (f->otherwise)
                json_set(a, s, "default", json_parse(a, str_of(f->otherwise), NULL, NULL));
        if (f->words) {
                struct json *words = json_set(a, s, "enum", json_array(a));

                for (size_t i = 0; f->words[i]; i++)
                        json_append(words, json_string(a, f->words[i]));
        }
        return s;
}

static void add_path_parameters(struct arena *a, struct json *list, const char *path)
{
        struct str rest = str_of(path);

        while (rest.n) {
                struct str part = str_split(&rest, '/');

                if (part.n > 2 && part.p[0] == '{')
                        json_append(list,
                                    json_build(a,
                                               "{'name': '%.*s', 'in': 'path', 'required': %p, "
                                               "'schema': {'type': 'string'}}",
                                               (int)part.n - 2, part.p + 1, (void *)json_truth(a, true)));
        }
}

static struct json *parameters(struct arena *a, const struct endpoint *e)
{
        struct json *list = json_array(a);

        add_path_parameters(a, list, e->path);
        for (const struct field *f = e->query; f && f->name; f++)
                json_append(list, json_build(a,
                                             "{'name': %s, 'in': 'query', 'required': %p, 'description': %s, "
                                             "'schema': %p}",
                                             f->name, (void *)json_truth(a, f->required), f->help,
                                             (void *)field_schema(a, f)));
        return json_first(list) ? list : NULL;
}

static struct json *body(struct arena *a, const struct endpoint *e)
{
        struct json *properties = json_object(a), *required = json_array(a);

        if (!e->body)
                return NULL;
        for (const struct field *f = e->body; f->name; f++) {
                struct json *s = field_schema(a, f);

                json_set(a, s, "description", json_string(a, f->help));
                json_set(a, properties, f->name, s);
                if (f->required)
                        json_append(required, json_string(a, f->name));
        }
        return json_build(a,
                          "{'required': %p, 'content': {'application/json': {'schema': {'type': 'object', "
                          "'properties': %p, 'required': %p}}}}",
                          (void *)json_truth(a, json_first(required) != NULL), (void *)properties,
                          (void *)(json_first(required) ? required : NULL));
}

/* ---- operations */

static struct json *failure(struct arena *a, const char *description)
{
        return json_build(a,
                          "{'description': %s, 'content': {'application/json': {'schema': {'$ref': "
                          "'#/components/schemas/Error'}}}}",
                          description);
}

static struct json *responses(struct arena *a, const struct endpoint *e)
{
        const char *type = e->answer && strchr(e->answer, '/') ? e->answer : "application/json";
        struct json *r = json_object(a), *content = NULL;

        if (e->answer)
                content = json_build(
                        a, "{'%s': {'schema': %p}}", type,
                        (void *)type_schema(a, strchr(e->answer, '/') ? STR("string") : str_of(e->answer)));
        json_set(a, r, arena_printf(a, "%d", e->status ? e->status : 200),
                 json_build(a, "{'description': %s, 'content': %p}", e->summary, (void *)content));
        if (e->query || e->body)
                json_set(a, r, "422", failure(a, "A parameter or a member is not as it must be"));
        if (!e->open) {
                json_set(a, r, "401", failure(a, "There is no token, or it is not valid"));
                json_set(a, r, "403", failure(a, "The API server does not let the caller do it"));
        }
        if (strchr(e->path, '{'))
                json_set(a, r, "404", failure(a, "There is none"));
        return r;
}

/* "get_api_v1_runs". */
static const char *operation_id(struct arena *a, const struct endpoint *e)
{
        char *id = arena_printf(a, "%s%s", e->method, e->path), *to = id;

        for (const char *p = id; *p; p++) {
                if (*p >= 'A' && *p <= 'Z')
                        *to++ = (char)(*p - 'A' + 'a');
                else if (*p != '{' && *p != '}')
                        *to++ = strchr("/-.", *p) ? '_' : *p;
        }
        *to = '\0';
        return id;
}

static struct json *operation(struct arena *a, const struct endpoint *e)
{
        return json_build(a,
                          "{'operationId': %s, 'summary': %s, 'parameters': %p, 'requestBody': %p, "
                          "'responses': %p, 'security': %p}",
                          operation_id(a, e), e->summary, (void *)parameters(a, e), (void *)body(a, e),
                          (void *)responses(a, e), (void *)(e->open ? json_array(a) : NULL));
}

struct json *openapi_document(struct arena *a, const char *cookie)
{
        struct json *paths = json_object(a), *components = json_object(a);

        for (const struct endpoint *e = ENDPOINTS; e->method; e++) {
                struct json *path = json_at(paths, e->path);
                char method[16];

                snprintf(method, sizeof(method), "%s", e->method);
                for (char *p = method; *p; p++)
                        *p = (char)(*p - 'A' + 'a');
                if (!path)
                        path = json_set(a, paths, e->path, json_object(a));
                json_set(a, path, method, operation(a, e));
        }
        for (size_t i = 0; i < ARRAY_LEN(schemas); i++)
                json_set(a, components, schemas[i].name, schema(a, schemas[i].members));
        return json_build(
                a,
                "{'openapi': '3.1.0', 'info': {'title': 'Sonde', 'version': %s, 'description': 'Runs of "
                "every "
                "kind, live; and the paths of dProfiler on the same resources.'}, 'security': "
                "[{'bearer': []}, {'cookie': []}], 'paths': %p, 'components': {'schemas': %p, "
                "'securitySchemes': {'bearer': {'type': 'http', 'scheme': 'bearer'}, 'cookie': {'type': "
                "'apiKey', 'in': 'cookie', 'name': %s}}}}",
                SONDE_VERSION, (void *)paths, (void *)components, cookie);
}

void serve_openapi(struct call *c)
{
        char cookie[COOKIE_NAME_MAX];

        call_reply(c, 200,
                   openapi_document(&c->arena, server_cookie_name(http_request_headers(c->ex), cookie)));
}
