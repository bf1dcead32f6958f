#include "json/pattern_internal.h"

enum { CODE_MAX = 20000 };

enum op { OP_SET, OP_SPLIT, OP_JUMP, OP_ASSERT, OP_MATCH };

struct code {
        enum op op;
        uint32_t x, y;        /* where to go on; OP_SPLIT has two ways */
        enum re_kind assert;  /* OP_ASSERT */
        struct range_set set; /* OP_SET */
};

struct pattern {
        struct code *code;
        size_t n;
};

/* ---- trees to code. Every piece falls through to what is written after it. */

struct writer {
        VEC(struct code) code;
        bool overflow;
};

static uint32_t emit(struct writer *w, struct code code)
{
        if (w->code.n >= CODE_MAX) {
                w->overflow = true;
                return 0;
        }
        *vec_push(&w->code) = code;
        return (uint32_t)w->code.n - 1;
}

static uint32_t next(const struct writer *w)
{
        return (uint32_t)w->code.n;
}

static void emit_re(struct writer *w, const struct re *re);

static void emit_alternatives(struct writer *w, const struct re *re)
{
        uint32_t split = emit(w, (struct code){.op = OP_SPLIT}), jump;

        w->code.v[split].x = next(w);
        emit_re(w, re->left);
        jump = emit(w, (struct code){.op = OP_JUMP});
        w->code.v[split].y = next(w);
        emit_re(w, re->right);
        w->code.v[jump].x = next(w);
}

static void emit_optional(struct writer *w, const struct re *re)
{
        uint32_t split = emit(w, (struct code){.op = OP_SPLIT});

        w->code.v[split].x = next(w);
        emit_re(w, re);
        w->code.v[split].y = next(w);
}

static void emit_star(struct writer *w, const struct re *re)
{
        uint32_t split = emit(w, (struct code){.op = OP_SPLIT});

        w->code.v[split].x = next(w);
        emit_re(w, re);
        emit(w, (struct code){.op = OP_JUMP, .x = split});
        w->code.v[split].y = next(w);
}

static void emit_repeat(struct writer *w, const struct re *re)
{
        for (int i = 0; i < re->min && !w->overflow; i++)
                emit_re(w, re->left);
        if (re->max == REPEAT_NO_END)
                emit_star(w, re->left);
        for (int i = re->min; i < re->max && !w->overflow; i++)
                emit_optional(w, re->left);
}

static void emit_re(struct writer *w, const struct re *re)
{
        if (w->overflow)
                return;
        switch (re->kind) {
        case RE_EMPTY:
                return;
        case RE_SET:
                emit(w, (struct code){.op = OP_SET, .set = re->set, .x = next(w) + 1});
                return;
        case RE_CAT:
                emit_re(w, re->left);
                emit_re(w, re->right);
                return;
        case RE_ALT:
                emit_alternatives(w, re);
                return;
        case RE_REPEAT:
                emit_repeat(w, re);
                return;
        default:
                emit(w, (struct code){.op = OP_ASSERT, .assert = re->kind, .x = next(w) + 1});
        }
}

struct pattern *pattern_new(struct arena *a, struct str text, struct err *err)
{
        struct writer w = {0};
        struct pattern *p;
        struct re *re = re_parse(a, text, err);

        if (!re)
                return NULL;
        emit_re(&w, re);
        emit(&w, (struct code){.op = OP_MATCH});
        if (w.overflow) {
                vec_done(&w.code);
                err_set(err, E_TOO_LARGE, "pattern `%.*s` needs too much memory", STR_ARG(text));
                return NULL;
        }
        p = arena_new(a, struct pattern);
        p->n = w.code.n;
        p->code = arena_memdup(a, w.code.v, w.code.n * sizeof(*w.code.v));
        vec_done(&w.code);
        return p;
}

/* ---- the machine: all states at once, one character at a time */

/* A set of states that can be emptied at no cost: `where` says where in `list` a state would be. */
struct states {
        uint32_t *list, *where;
        size_t n;
};

struct machine {
        const struct pattern *pattern;
        struct states now, then;
        uint32_t *stack;
        uint32_t before, after; /* characters around the place; NOTHING at the ends */
        bool matched;
};

static const uint32_t NOTHING = UINT32_MAX;

static bool is_word(uint32_t c)
{
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool holds(const struct machine *m, enum re_kind assert)
{
        switch (assert) {
        case RE_TEXT_START:
                return m->before == NOTHING;
        case RE_TEXT_END:
                return m->after == NOTHING;
        case RE_LINE_START:
                return m->before == NOTHING || m->before == '\n';
        case RE_LINE_END:
                return m->after == NOTHING || m->after == '\n';
        case RE_WORD_BORDER:
                return is_word(m->before) != is_word(m->after);
        default:
                return is_word(m->before) == is_word(m->after);
        }
}

static bool add_state(struct states *s, uint32_t state)
{
        if (s->where[state] < s->n && s->list[s->where[state]] == state)
                return false;
        s->where[state] = (uint32_t)s->n;
        s->list[s->n++] = state;
        return true;
}

/* Adds STATE and all that can be reached from it without a character. A state is put on the stack at most once for
 * each way into it: at most twice as often as there are states. */
static void follow(struct machine *m, struct states *s, uint32_t state)
{
        size_t n = 0;

        m->stack[n++] = state;
        while (n) {
                const struct code *code;

                state = m->stack[--n];
                if (!add_state(s, state))
                        continue;
                code = &m->pattern->code[state];
                if (code->op == OP_MATCH)
                        m->matched = true;
                if (code->op == OP_SPLIT)
                        m->stack[n++] = code->y;
                if (code->op == OP_SPLIT || code->op == OP_JUMP ||
                    (code->op == OP_ASSERT && holds(m, code->assert)))
                        m->stack[n++] = code->x;
        }
}

static bool in_set(const struct range_set *set, uint32_t c)
{
        size_t low = 0, high = set->n;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (c > set->v[middle].high)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < set->n && c >= set->v[low].low;
}

static bool run(struct machine *m, struct str text)
{
        size_t at = 0;

        m->before = NOTHING;
        m->after = text.n ? utf8_next(text, &at) : NOTHING;
        for (;;) {
                struct states swap = m->now;
                uint32_t c = m->after;

                /* A match may begin anywhere; `now` was reached by what is already read. */
                follow(m, &m->now, 0);
                swap = m->now;
                if (m->matched || c == NOTHING)
                        return m->matched;
                m->before = c;
                m->after = at < text.n ? utf8_next(text, &at) : NOTHING;
                m->then.n = 0;
                for (size_t i = 0; i < m->now.n; i++) {
                        const struct code *code = &m->pattern->code[m->now.list[i]];

                        if (code->op == OP_SET && in_set(&code->set, c))
                                follow(m, &m->then, code->x);
                }
                m->now = m->then;
                m->then = swap;
        }
}

bool pattern_match(const struct pattern *p, struct str text)
{
        /* four arrays for the two sets, and the stack, which holds at most two entries for each state */
        _cleanup_(free_ptr) uint32_t *memory = xcalloc(p->n * 6 + 2, sizeof(*memory));
        struct machine m = {
                .pattern = p,
                .now = {.list = memory, .where = memory + p->n},
                .then = {.list = memory + 2 * p->n, .where = memory + 3 * p->n},
                .stack = memory + 4 * p->n,
        };

        return run(&m, text);
}
