/*
 * Where one is in the queue, from the objects of all that wait.
 */
#include "kinds/summary.h"

bool summary_place_is_rough(const struct summary *s, const char **ret_ns)
{
        struct str place = str_of(s->queue ? s->queue : "");

        if (!place.n || place.p[place.n - 1] != '+')
                return false;
        *ret_ns = s->sentence && strstr(s->sentence, ADMISSION_OF_NAMESPACE) ? s->ns : NULL;
        return true;
}

/* Below 0: A goes first. */
static int by_turn(const struct summary *a, const struct summary *b)
{
        const struct summary *both[] = {a, b};
        usec_t at[2];
        char key[2][512];
        int order;

        for (size_t i = 0; i < 2; i++) {
                int64_t priority = both[i]->priority < 0 ? ADMISSION_PRIORITY_DEFAULT : both[i]->priority;
                int64_t steps = ADMISSION_PRIORITY_MAX - MIN(priority, (int64_t)ADMISSION_PRIORITY_MAX);

                at[i] = usec_add(both[i]->created, (usec_t)steps * ADMISSION_PRIORITY_STEP);
                snprintf(key[i], sizeof(key[i]), "%s/%s", both[i]->ns, both[i]->name);
        }
        if (at[0] != at[1])
                return at[0] < at[1] ? -1 : 1;
        order = strcmp(key[0], key[1]);
        return order ? order : strcmp(a->kind->label, b->kind->label);
}

size_t summary_place(const struct summary *s, const struct summary *const *all, size_t n)
{
        const char *ns;
        size_t place = 1;

        if (!summary_place_is_rough(s, &ns))
                return 0;
        for (size_t i = 0; i < n; i++)
                if (all[i]->queue && (!ns || streq(all[i]->ns, ns)) && by_turn(all[i], s) < 0)
                        place++;
        return place;
}
