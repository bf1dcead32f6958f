#include "unit/unit.h"

struct item {
        struct tree_node node;
        bool in;
        char key[8];
};

static int depth(const struct tree_node *n)
{
        int left, right;

        if (!n)
                return 0;
        left = depth(n->left);
        right = depth(n->right);
        return 1 + MAX(left, right);
}

/* Every link, the order of keys and the order of weights. */
static void check(const struct tree_node *n, const struct tree_node *parent)
{
        if (!n)
                return;
        assert_ptr_equal(n->parent, parent);
        if (parent)
                assert_true(n->weight <= parent->weight);
        if (n->left)
                assert_true(str_cmp(n->left->key, n->key) < 0);
        if (n->right)
                assert_true(str_cmp(n->right->key, n->key) > 0);
        assert_int_equal(n->count, 1 + (n->left ? n->left->count : 0) + (n->right ? n->right->count : 0));
        check(n->left, n);
        check(n->right, n);
}

static void check_against(const struct tree *t, struct item *items, size_t n)
{
        const struct tree_node *at = tree_first(t);
        size_t in = 0;

        check(t->root, NULL);
        for (size_t i = 0; i < n; i++) {
                struct str key = str_of(items[i].key);

                assert_ptr_equal(tree_find(t, key), items[i].in ? &items[i].node : NULL);
                assert_ptr_equal(tree_from(t, key), at);
                if (!items[i].in) {
                        assert_ptr_equal(tree_after(t, key), at);
                        continue;
                }
                assert_ptr_equal(at, &items[i].node);
                assert_int_equal(tree_rank(at), in);
                assert_ptr_equal(tree_at(t, in), at);
                at = tree_next(at);
                assert_ptr_equal(tree_after(t, key), at);
                in++;
        }
        assert_null(at);
        assert_null(tree_at(t, in));
        assert_int_equal(t->n, in);
}

static void random_changes_keep_the_order(void **state)
{
        enum { N = 200 };
        struct item *items = xcalloc(N, sizeof(*items));
        struct tree t = TREE_INIT;
        struct rng rng;

        rng_seed(&rng, 7);
        for (size_t i = 0; i < N; i++)
                snprintf(items[i].key, sizeof(items[i].key), "k%03zu", i);
        check_against(&t, items, N);
        for (int round = 0; round < 2000; round++) {
                struct item *it = &items[rng_below(&rng, N)];

                if (it->in)
                        tree_remove(&t, &it->node);
                else
                        tree_add(&t, &it->node, str_of(it->key));
                it->in = !it->in;
                if (round % 20 == 0)
                        check_against(&t, items, N);
        }
        check_against(&t, items, N);
        free(items);
}

static void keys_in_order_do_not_make_it_deep(void **state)
{
        enum { N = 20000 };
        struct item *items = xcalloc(N, sizeof(*items));
        struct tree t = TREE_INIT;

        for (size_t i = 0; i < N; i++) {
                snprintf(items[i].key, sizeof(items[i].key), "%06zu", i);
                tree_add(&t, &items[i].node, str_of(items[i].key));
        }
        /* A perfect one has 15 levels, this has about 34; a list would have 20 000. */
        assert_in_range(depth(t.root), 15, 100);
        free(items);
}

static void a_position_stays_while_others_come_and_go(void **state)
{
        struct item b = {.key = "b"}, c = {.key = "c"}, a = {.key = "a"}, d = {.key = "d"};
        struct tree t = TREE_INIT;

        tree_add(&t, &b.node, str_of(b.key));
        tree_add(&t, &d.node, str_of(d.key));
        tree_add(&t, &a.node, str_of(a.key));
        tree_add(&t, &c.node, str_of(c.key));
        tree_remove(&t, &a.node);
        assert_ptr_equal(tree_next(&b.node), &c.node);
        tree_remove(&t, &c.node);
        assert_ptr_equal(tree_next(&b.node), &d.node);
        assert_null(tree_next(&d.node));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_changes_keep_the_order),
        cmocka_unit_test(keys_in_order_do_not_make_it_deep),
        cmocka_unit_test(a_position_stays_while_others_come_and_go),
};

UNIT_MAIN(tests)
