/* Product labels as nodes have them: each is the right GPU, or none. */
#include "unit/unit.h"

#include "kinds/cuda/placement.h"

static const char *named(const char *product, int64_t memory)
{
        const struct gpu *gpu = gpu_find(str_of(product), memory);

        return gpu ? gpu->name : "unknown";
}

static const struct {
        const char *product;
        int64_t memory;
        const char *gpu;
} labels[] = {
        {"NVIDIA-GB200", 189471, "GB200"},
        {"NVIDIA-B200", 183359, "B200"},
        {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, "RTX PRO 6000 Server"},
        {"NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition", 97887, "RTX PRO 6000"},
        {"NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition", 97887, "RTX PRO 6000"},
        {"NVIDIA-GeForce-RTX-5090", 32607, "RTX 5090"},
        {"NVIDIA-GeForce-RTX-5080", 16303, "RTX 5080"},
        {"NVIDIA-GeForce-RTX-5070-Ti", 16303, "RTX 5070 Ti"},
        {"NVIDIA-GH200-480GB", 97871, "GH200 96GB"},
        {"NVIDIA-GH200-120GB", 97871, "GH200 96GB"},
        {"NVIDIA-GH200-144G-HBM3e", 147456, "GH200 144GB"},
        {"NVIDIA-H200", 143771, "H200"},
        {"NVIDIA-H200-NVL", 143771, "H200 NVL"},
        {"NVIDIA-H100-80GB-HBM3", 81559, "H100 SXM 80GB"},
        {"NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", 9984, "H100 SXM 80GB"},
        {"NVIDIA-H100-80GB-HBM3-SHARED", 81559, "H100 SXM 80GB"},
        {"NVIDIA-H100-PCIe", 81559, "H100 PCIe 80GB"},
        {"NVIDIA-H100-NVL", 95830, "H100 NVL 94GB"},
        {"NVIDIA-H20", 97871, "H20 96GB"},
        {"NVIDIA-L40S", 46068, "L40S"},
        {"NVIDIA-L40", 46068, "L40"},
        {"NVIDIA-L4", 23034, "L4"},
        {"NVIDIA-L4-SHARED", 23034, "L4"},
        {"NVIDIA-RTX-6000-Ada-Generation", 49140, "RTX 6000 Ada"},
        {"NVIDIA-RTX-5000-Ada-Generation", 32760, "RTX 5000 Ada"},
        {"NVIDIA-RTX-4000-Ada-Generation", 20475, "RTX 4000 Ada"},
        {"NVIDIA-GeForce-RTX-4090", 24564, "RTX 4090"},
        {"NVIDIA-GeForce-RTX-4090-D", 24564, "RTX 4090 D"},
        {"NVIDIA-GeForce-RTX-4080", 16376, "RTX 4080"},
        {"NVIDIA-GeForce-RTX-4080-SUPER", 16376, "RTX 4080 SUPER"},
        {"NVIDIA-GeForce-RTX-4070-Ti-SUPER", 16376, "RTX 4070 Ti SUPER"},
        {"NVIDIA-A100-SXM4-40GB", 40960, "A100 SXM4 40GB"},
        {"NVIDIA-A100-SXM4-80GB", 81920, "A100 SXM4 80GB"},
        {"A100-SXM4-80GB", 81251, "A100 SXM4 80GB"},
        {"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 4864, "A100 SXM4 40GB"},
        {"NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", 40320, "A100 SXM4 80GB"},
        {"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", 4864, "A100 SXM4 40GB"},
        {"NVIDIA-A100-PCIE-40GB", 40960, "A100 PCIe 40GB"},
        {"A100-PCIE-40GB", 40536, "A100 PCIe 40GB"},
        {"NVIDIA-A100-80GB-PCIe", 81920, "A100 PCIe 80GB"},
        {"NVIDIA-A800-SXM4-80GB", 81251, "A800 SXM4 80GB"},
        {"NVIDIA-A800-80GB-PCIe", 81920, "A800 PCIe 80GB"},
        {"NVIDIA-A30", 24576, "A30"},
        {"NVIDIA-A30-MIG-1g.6gb", 5952, "A30"},
        {"NVIDIA-A40", 46068, "A40"},
        {"NVIDIA-A10", 23028, "A10"},
        {"NVIDIA-A10G", 23028, "A10G"},
        {"NVIDIA-A16", 15356, "A16"},
        {"NVIDIA-A2", 15356, "A2"},
        {"NVIDIA-RTX-A6000", 49140, "RTX A6000"},
        {"Quadro-RTX-A6000", 49140, "RTX A6000"},
        {"NVIDIA-RTX-A5000", 24564, "RTX A5000"},
        {"NVIDIA-RTX-A4000", 16376, "RTX A4000"},
        {"NVIDIA-GeForce-RTX-3090", 24576, "RTX 3090"},
        {"GeForce-RTX-3090", 24268, "RTX 3090"},
        {"NVIDIA-GeForce-RTX-3090-Ti", 24564, "RTX 3090 Ti"},
        {"NVIDIA-GeForce-RTX-3080", 10240, "RTX 3080 10GB"},
        {"NVIDIA-GeForce-RTX-3080", 12288, "RTX 3080 12GB"},
        {"NVIDIA-GeForce-RTX-3080-Ti", 12288, "RTX 3080 Ti"},
        {"NVIDIA-GeForce-RTX-3070", 8192, "RTX 3070"},
        {"Tesla-T4", 15360, "T4"},
        {"NVIDIA-Tesla-T4", 15360, "T4"},
        {"Tesla-T4-SHARED", 15360, "T4"},
        {"NVIDIA-GeForce-RTX-2080-Ti", 11264, "RTX 2080 Ti"},
        {"NVIDIA-TITAN-RTX", 24576, "TITAN RTX"},
        {"TITAN-V", 12066, "TITAN V"},
        {"Tesla-V100-SXM2-16GB", 16384, "V100 SXM2 16GB"},
        {"Tesla-V100-SXM2-32GB", 32768, "V100 SXM2 32GB"},
        {"Tesla-V100-PCIE-16GB", 16384, "V100 PCIe 16GB"},
        {"Tesla-V100-PCIE-32GB", 32768, "V100 PCIe 32GB"},
        {"Tesla-V100S-PCIE-32GB", 32768, "V100S PCIe 32GB"},
        {"Tesla-P100-PCIE-16GB", 16384, "P100 16GB"},
        {"Tesla-P100-SXM2-16GB", 16384, "P100 16GB"},
        {"Tesla-P100-PCIE-12GB", 12288, "P100 12GB"},
        {"Tesla-P40", 23040, "P40"},
        {"Tesla-P4", 7680, "P4"},
        {"Tesla-M60", 7680, "M60"},
        {"Tesla-K80", 11441, "K80"},
};

static void test_labels_of_gpu_feature_discovery(void **state)
{
        for (size_t i = 0; i < ARRAY_LEN(labels); i++)
                if (!streq(named(labels[i].product, labels[i].memory), labels[i].gpu))
                        fail_msg("%s is %s, not %s", labels[i].product, labels[i].gpu,
                                 named(labels[i].product, labels[i].memory));
}

static void test_other_spellings(void **state)
{
        static const char *const products[][2] = {
                {"h100-sxm", "H100 SXM 80GB"},
                {"NVIDIA-H100-SXM", "H100 SXM 80GB"},
                {"h100-pcie", "H100 PCIe 80GB"},
                {"h200", "H200"},
                {"l40s", "L40S"},
                {"rtx-4090", "RTX 4090"},
                {"rtx-4080", "RTX 4080"},
                {"a100-sxm4-80gb", "A100 SXM4 80GB"},
                {"a100-sxm4-40gb", "A100 SXM4 40GB"},
                {"a100-pcie-80gb", "A100 PCIe 80GB"},
                {"a100-pcie-40gb", "A100 PCIe 40GB"},
                {"a10", "A10"},
                {"a30", "A30"},
                {"rtx-3090", "RTX 3090"},
                {"rtx-3080", "RTX 3080 10GB"},
                {"t4", "T4"},
                {"rtx-2080-ti", "RTX 2080 Ti"},
                {"v100-sxm2", "V100 SXM2 32GB"},
                {"v100-pcie", "V100 PCIe 32GB"},
                {"p100", "P100 16GB"},
                {"NVIDIA H100 80GB HBM3", "H100 SXM 80GB"},
                {"NVIDIA A100-SXM4-40GB", "A100 SXM4 40GB"},
                {"NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"},
                {"NVIDIA GeForce RTX 3090", "RTX 3090"},
                {"  tesla__t4  ", "T4"},
        };

        for (size_t i = 0; i < ARRAY_LEN(products); i++)
                assert_string_equal(named(products[i][0], 0), products[i][1]);
}

static void test_what_is_not_known_is_unknown(void **state)
{
        static const char *const products[] = {
                "",
                "-",
                "NVIDIA",
                "NVIDIA-Graphics-Device",
                "NVIDIA-A1000",
                "NVIDIA-RTX-A1000",
                "NVIDIA-GeForce-RTX-3050",
                "NVIDIA-GeForce-RTX-3090-Laptop-GPU",
                "NVIDIA-GeForce-RTX-3080-Ti-Laptop-GPU",
                "GeForce-RTX-2080-with-Max-Q-Design",
                "NVIDIA-GeForce-RTX-2080-Ti-Mobile",
                "NVIDIA-RTX-A5000-Laptop-GPU",
                "NVIDIA-GeForce-RTX-5090-D",
                "NVIDIA-GeForce-RTX-4080-Ti",
                "NVIDIA-GeForce-GTX-1660-Ti-SHARED",
                "NVIDIA-GeForce-GTX-3090",
                "NVIDIA-A100", /* SXM4 or PCIe */
                "NVIDIA-H100", /* the same */
                "NVIDIA-H100-80GB",
                "NVIDIA-A100-SXM4-64GB", /* a GPU of its own */
                "NVIDIA-A100X",
                "NVIDIA-H20-3e",
                "NVIDIA-L40G",
                "NVIDIA-A10M",
                "NVIDIA-A40-48Q", /* a share, of a vGPU */
                "GRID-T4-8C",
                "NVIDIA-RTX-6000", /* Turing's, or Ada's */
                "Quadro-6000",
                "Quadro-RTX-6000", /* passive ones have the name, too */
                "Quadro-RTX-8000",
                "NVIDIA-GeForce-RTX-4070", /* GDDR6 or GDDR6X */
                "NVIDIA-RTX-4000-SFF-Ada-Generation",
                "Tesla-V100-FHHL-16GB",
                "Tesla-V100",
                "Tesla-V100-SXM2-48GB",
                "NVIDIA-B300-SXM6-AC",
                "NVIDIA-GB300",
                "NVIDIA-GH200",
                "NVIDIA-RTX-PRO-6000-Blackwell", /* Server's bandwidth differs */
                "NVIDIA-A10-A30",
                "NVIDIA-T4-T4G",
                "MIG-1g.5gb",
                "AMD-Instinct-MI300X",
        };

        for (size_t i = 0; i < ARRAY_LEN(products); i++)
                if (gpu_find(str_of(products[i]), 0))
                        fail_msg("%s is not known, but said to be %s", products[i], named(products[i], 0));
        assert_null(gpu_find(STR_NULL, 81920));
}

/* The label leaves it open; the memory that the node has decides. A word that says it comes before. */
static void test_memory_decides(void **state)
{
        assert_string_equal(named("Tesla-V100-SXM2", 16160), "V100 SXM2 16GB");
        assert_string_equal(named("Tesla-V100-SXM2", 32510), "V100 SXM2 32GB");
        assert_string_equal(named("NVIDIA-A100-SXM4", 81251), "A100 SXM4 80GB");
        assert_string_equal(named("NVIDIA-A100-SXM4", 0), "A100 SXM4 40GB");
        assert_string_equal(named("NVIDIA-A100-SXM4-80GB", 40960), "A100 SXM4 80GB");
        assert_string_equal(named("Tesla-P100", 12198), "P100 12GB");
        assert_string_equal(named("NVIDIA-A100-SXM4-80GB-MIG-2g.20gb", 19968), "A100 SXM4 80GB");
        assert_string_equal(named("NVIDIA-A100-SXM4", INT64_MAX), "A100 SXM4 80GB");
        assert_string_equal(named("NVIDIA-A100-SXM4", INT64_MIN), "A100 SXM4 40GB");
}

static void test_slices(void **state)
{
        assert_true(gpu_is_slice(STR("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")));
        assert_true(gpu_is_slice(STR("NVIDIA-A100-SXM4-40GB-MIG-INVALID")));
        assert_false(gpu_is_slice(STR("NVIDIA-A100-SXM4-40GB")));
        assert_false(gpu_is_slice(STR("NVIDIA-A100-MIGHTY")));
        assert_false(gpu_is_slice(STR_NULL));
}

static void test_the_table_is_plausible(void **state)
{
        static const int computes[] = {37, 52, 60, 61, 70, 75, 80, 86, 89, 90, 100, 120};
        const struct gpu *gpu;
        size_t n = 0;

        for (; (gpu = gpu_at(n)); n++) {
                bool known = false;

                for (size_t i = 0; i < ARRAY_LEN(computes); i++)
                        known |= gpu->compute == computes[i];
                if (!known || gpu->sms < 10 || gpu->sms > 200 || gpu->bandwidth < 160 ||
                    gpu->bandwidth > 8000 || gpu->memory % 1024 || gpu->memory < 8 * 1024)
                        fail_msg("%s is not plausible", gpu->name);
                for (size_t k = 0; k < n; k++)
                        assert_string_not_equal(gpu_at(k)->name, gpu->name);
        }
        assert_true(n >= 60);
        assert_null(gpu_at(SIZE_MAX));
}

/* The document has a line for each GPU, and none for others. */
static void test_the_document_has_the_same_table(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20), line = BUF_INIT(256);
        const char *table;
        size_t n = 0, lines = 0;
        struct str rest;

        assert_int_equal(file_read("docs/placement.md", &text, NULL), 0);
        table = strstr(buf_cstr(&text), "\n| GPU | SMs |");
        assert_non_null(table);
        for (const struct gpu *gpu; (gpu = gpu_at(n)); n++) {
                buf_clear(&line);
                buf_printf(&line, "\n| %s | %d | %d | %d | %d.%d |\n", gpu->name, gpu->sms, gpu->bandwidth,
                           gpu->memory / 1024, gpu->compute / 10, gpu->compute % 10);
                if (!strstr(table, buf_cstr(&line)))
                        fail_msg("docs/placement.md has no line%s", buf_cstr(&line));
        }
        for (rest = str_of(table + 1); str_has_prefix(str_split(&rest, '\n'), STR("|"));)
                lines++;
        assert_int_equal(lines, n + 2); /* its head */
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels_of_gpu_feature_discovery),
        cmocka_unit_test(test_other_spellings),
        cmocka_unit_test(test_what_is_not_known_is_unknown),
        cmocka_unit_test(test_memory_decides),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_the_table_is_plausible),
        cmocka_unit_test(test_the_document_has_the_same_table),
};

UNIT_MAIN(tests)
