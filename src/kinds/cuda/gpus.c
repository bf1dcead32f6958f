/*
 * What a product is: SMs, bandwidth, memory and compute capability, as published. Left out is what is not certain, and what
 * shares its name with a board that differs (RTX 4070: two kinds of memory; Quadro RTX 6000 and 8000: passive ones): unknown is
 * better than wrong. docs/placement.md has the same table.
 */
#include "kinds/cuda/placement.h"

enum { GIB = 1024 };

/*
 * Groups of words: of each group one word must be in the label, but for those with a '?', which may be missing. The first group
 * is what tells most labels apart. Of entries with the same words memory decides; the first is upstream's, if that has one.
 */
struct row {
        struct gpu gpu;
        const char *words;
};

/* clang-format off */
static const struct row rows[] = {
        /* Blackwell */
        {{"GB200",                   152, 8000, 186 * GIB, 100}, "gb200"},
        {{"B200",                    148, 8000, 180 * GIB, 100}, "b200"},
        {{"RTX PRO 6000 Server",     188, 1597,  96 * GIB, 120}, "6000 pro blackwell server"},
        {{"RTX PRO 6000",            188, 1792,  96 * GIB, 120}, "6000 pro blackwell workstation ?max ?q"},
        {{"RTX 5090",                170, 1792,  32 * GIB, 120}, "5090"},
        {{"RTX 5080",                 84,  960,  16 * GIB, 120}, "5080"},
        {{"RTX 5070 Ti",              70,  896,  16 * GIB, 120}, "5070 ti"},
        {{"RTX 5070",                 48,  672,  12 * GIB, 120}, "5070"},
        /* Hopper. The 480 GB and 120 GB of a GH200 are its CPU's. */
        {{"GH200 144GB",             132, 4900, 144 * GIB,  90}, "gh200 144g|144gb ?hbm3e"},
        {{"GH200 96GB",              132, 4000,  96 * GIB,  90}, "gh200 480gb|120gb"},
        {{"H200",                    132, 4800, 141 * GIB,  90}, "h200 ?sxm|sxm5 ?hbm3e"},
        {{"H200 NVL",                132, 4800, 141 * GIB,  90}, "h200 nvl"},
        {{"H100 SXM 80GB",           132, 3350,  80 * GIB,  90}, "h100 sxm|sxm5|hbm3"},
        {{"H100 PCIe 80GB",          114, 2000,  80 * GIB,  90}, "h100 pcie"},
        {{"H100 NVL 94GB",           132, 3938,  94 * GIB,  90}, "h100 nvl"},
        {{"H20 96GB",                 78, 4000,  96 * GIB,  90}, "h20"},
        /* Ada */
        {{"L40S",                    142,  864,  48 * GIB,  89}, "l40s"},
        {{"L40",                     142,  864,  48 * GIB,  89}, "l40"},
        {{"L4",                       58,  300,  24 * GIB,  89}, "l4"},
        {{"RTX 6000 Ada",            142,  960,  48 * GIB,  89}, "6000 ada"},
        {{"RTX 5000 Ada",            100,  576,  32 * GIB,  89}, "5000 ada"},
        {{"RTX 4500 Ada",             60,  432,  24 * GIB,  89}, "4500 ada"},
        {{"RTX 4000 Ada",             48,  360,  20 * GIB,  89}, "4000 ada"},
        {{"RTX 4090",                128, 1008,  24 * GIB,  89}, "4090"},
        {{"RTX 4090 D",              114, 1008,  24 * GIB,  89}, "4090 d"},
        {{"RTX 4080",                 76,  717,  16 * GIB,  89}, "4080"},
        {{"RTX 4080 SUPER",           80,  736,  16 * GIB,  89}, "4080 super"},
        {{"RTX 4070 Ti SUPER",        66,  672,  16 * GIB,  89}, "4070 ti super"},
        {{"RTX 4070 Ti",              60,  504,  12 * GIB,  89}, "4070 ti"},
        {{"RTX 4070 SUPER",           56,  504,  12 * GIB,  89}, "4070 super"},
        /* Ampere. An A16 is four GPUs: one of them. */
        {{"A100 SXM4 40GB",          108, 1555,  40 * GIB,  80}, "a100 sxm|sxm4"},
        {{"A100 SXM4 80GB",          108, 2039,  80 * GIB,  80}, "a100 sxm|sxm4"},
        {{"A100 PCIe 40GB",          108, 1555,  40 * GIB,  80}, "a100 pcie"},
        {{"A100 PCIe 80GB",          108, 1935,  80 * GIB,  80}, "a100 pcie"},
        {{"A800 SXM4 80GB",          108, 2039,  80 * GIB,  80}, "a800 sxm|sxm4"},
        {{"A800 PCIe 80GB",          108, 1935,  80 * GIB,  80}, "a800 pcie"},
        {{"A30",                      56,  933,  24 * GIB,  80}, "a30"},
        {{"A40",                      84,  696,  48 * GIB,  86}, "a40 ?pcie"},
        {{"A10",                      72,  600,  24 * GIB,  86}, "a10 ?pcie"},
        {{"A10G",                     80,  600,  24 * GIB,  86}, "a10g"},
        {{"A16",                      10,  200,  16 * GIB,  86}, "a16"},
        {{"A2",                       10,  200,  16 * GIB,  86}, "a2"},
        {{"RTX A6000",                84,  768,  48 * GIB,  86}, "a6000"},
        {{"RTX A5500",                80,  768,  24 * GIB,  86}, "a5500"},
        {{"RTX A5000",                64,  768,  24 * GIB,  86}, "a5000"},
        {{"RTX A4500",                56,  640,  20 * GIB,  86}, "a4500"},
        {{"RTX A4000",                48,  448,  16 * GIB,  86}, "a4000"},
        {{"RTX 3090 Ti",              84, 1008,  24 * GIB,  86}, "3090 ti"},
        {{"RTX 3090",                 82,  936,  24 * GIB,  86}, "3090"},
        {{"RTX 3080 Ti",              80,  912,  12 * GIB,  86}, "3080 ti"},
        {{"RTX 3080 10GB",            68,  760,  10 * GIB,  86}, "3080"},
        {{"RTX 3080 12GB",            70,  912,  12 * GIB,  86}, "3080"},
        {{"RTX 3070 Ti",              48,  608,   8 * GIB,  86}, "3070 ti"},
        {{"RTX 3070",                 46,  448,   8 * GIB,  86}, "3070"},
        /* Turing */
        {{"T4",                       40,  320,  16 * GIB,  75}, "t4"},
        {{"RTX 2080 Ti",              68,  616,  11 * GIB,  75}, "2080 ti"},
        {{"TITAN RTX",                72,  672,  24 * GIB,  75}, "titan rtx"},
        /* Volta */
        {{"V100 SXM2 32GB",           80,  900,  32 * GIB,  70}, "v100 sxm2"},
        {{"V100 SXM2 16GB",           80,  900,  16 * GIB,  70}, "v100 sxm2"},
        {{"V100 PCIe 32GB",           80,  900,  32 * GIB,  70}, "v100 pcie"},
        {{"V100 PCIe 16GB",           80,  900,  16 * GIB,  70}, "v100 pcie"},
        {{"V100S PCIe 32GB",          80, 1134,  32 * GIB,  70}, "v100s ?pcie"},
        {{"TITAN V",                  80,  653,  12 * GIB,  70}, "titan v"},
        /* Pascal and before. An M60 and a K80 are two GPUs: one of them. */
        {{"P100 16GB",                56,  732,  16 * GIB,  60}, "p100 ?pcie|sxm2"},
        {{"P100 12GB",                56,  549,  12 * GIB,  60}, "p100 ?pcie"},
        {{"P40",                      30,  346,  24 * GIB,  61}, "p40"},
        {{"P4",                       20,  192,   8 * GIB,  61}, "p4"},
        {{"M60",                      16,  160,   8 * GIB,  52}, "m60"},
        {{"K80",                      13,  240,  12 * GIB,  37}, "k80"},
};
/* clang-format on */

/* What stands in names and says nothing. A variant's word (Ti, Laptop, Max-Q) is none of these. */
static const char *const fillers[] = {"nvidia", "tesla",      "geforce", "quadro", "rtx",
                                      "gpu",    "generation", "edition", "shared"};

static bool is_word_char(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Takes the next word from REST; false: there is none. */
static bool next_word(struct str *rest, struct str *ret)
{
        size_t from = 0, to;

        while (from < rest->n && !is_word_char(rest->p[from]))
                from++;
        for (to = from; to < rest->n && is_word_char(rest->p[to]);)
                to++;
        if (from == to)
                return false;
        *ret = str_n(rest->p + from, to - from);
        *rest = str_n(rest->p + to, rest->n - to);
        return true;
}

/* The name of the whole GPU: what is before the word MIG. */
static struct str name_of_whole(struct str product)
{
        struct str rest = product, word;

        while (next_word(&rest, &word))
                if (str_case_eq(word, STR("mig")))
                        return str_n(product.p, (size_t)(word.p - product.p));
        return product;
}

bool gpu_is_slice(struct str product)
{
        return name_of_whole(product).n < product.n;
}

/* WORD is one of a group: "sxm|sxm4". */
static bool is_of_group(struct str group, struct str word)
{
        while (group.p)
                if (str_case_eq(str_split(&group, '|'), word))
                        return true;
        return false;
}

static bool has_group(struct str product, struct str group)
{
        struct str word;

        while (next_word(&product, &word))
                if (is_of_group(group, word))
                        return true;
        return false;
}

/* "80gb" of a GPU that has so much. */
static bool is_its_memory(const struct gpu *gpu, struct str word)
{
        int64_t size;

        return word.n > 2 && str_case_eq(str_n(word.p + word.n - 2, 2), STR("gb")) &&
               str_to_i64(str_n(word.p, word.n - 2), &size) && size == gpu->memory / GIB;
}

static bool is_explained(const struct row *row, struct str word)
{
        struct str groups = str_of(row->words);

        for (size_t i = 0; i < ARRAY_LEN(fillers); i++)
                if (str_case_eq(word, str_of(fillers[i])))
                        return true;
        while (groups.p) {
                struct str group = str_split(&groups, ' ');

                if (group.p[0] == '?')
                        group = str_n(group.p + 1, group.n - 1);
                if (is_of_group(group, word))
                        return true;
        }
        return is_its_memory(&row->gpu, word);
}

static bool is_meant(const struct row *row, struct str product)
{
        struct str groups = str_of(row->words), word;

        while (groups.p) {
                struct str group = str_split(&groups, ' ');

                if (group.p[0] != '?' && !has_group(product, group))
                        return false;
        }
        while (next_word(&product, &word))
                if (!is_explained(row, word))
                        return false;
        return true;
}

const struct gpu *gpu_find(struct str product, int64_t memory)
{
        struct str whole = name_of_whole(product);
        const struct gpu *best = NULL;

        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const struct gpu *gpu = &rows[i].gpu;

                if (!is_meant(&rows[i], whole))
                        continue;
                /* A slice's memory says nothing of the GPU's. */
                if (!best || (memory > 0 && whole.n == product.n &&
                              llabs(gpu->memory - memory) < llabs(best->memory - memory)))
                        best = gpu;
        }
        return best;
}

const struct gpu *gpu_at(size_t i)
{
        return i < ARRAY_LEN(rows) ? &rows[i].gpu : NULL;
}
