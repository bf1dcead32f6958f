/* What Nsight Compute wrote, in every layout, with the output of others around it. */
#include "unit/unit.h"

#include "probe/ncu/ncu.h"

#define SM   "sm__throughput.avg.pct_of_peak_sustained_elapsed"
#define MEM  "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
#define TIME "gpu__time_duration.sum"

struct seen {
        struct buf text; /* a line a launch */
        struct err err;
        enum ncu_layout layout;
        unsigned launches;
        int result;
};

static void on_launch(void *arg, const struct ncu_launch *l)
{
        static const char *const names[NCU_METRICS] = {
                [NCU_SM] = "sm",
                [NCU_MEM] = "mem",
                [NCU_DRAM] = "dram",
                [NCU_L2] = "l2",
                [NCU_L1] = "l1",
                [NCU_OCCUPANCY] = "occ",
                [NCU_OCCUPANCY_MAX] = "max",
                [NCU_STALL] = "stall",
                [NCU_WAVES] = "waves",
                [NCU_DURATION] = "ns",
                [NCU_DRAM_READ] = "read",
                [NCU_DRAM_WRITE] = "write",
                [NCU_PASSES] = "passes",
        };
        struct seen *s = arg;

        s->launches++;
        buf_adds(&s->text, l->kernel);
        if (l->cc[0])
                buf_printf(&s->text, " cc=%s", l->cc);
        if (l->device[0])
                buf_printf(&s->text, " device=%s", l->device);
        for (unsigned m = 0; m < NCU_METRICS; m++)
                if (l->has & (1u << m))
                        buf_printf(&s->text, " %s=%.10g", names[m], l->value[m]);
        buf_addc(&s->text, '\n');
}

/*
 * The pieces are copied to a place of their exact size, so that a sanitizer sees whoever reads beyond. Quotes are written as
 * apostrophes in this file, so that records can be read in it.
 */
static void read_in_pieces(struct seen *s, struct str text, size_t piece)
{
        _cleanup_(ncu_reader_free) struct ncu_reader *r = ncu_reader_new(on_launch, s);

        *s = (struct seen){.text = BUF_INIT(SIZE_MAX), .err = ERR_INIT};
        while (text.n && s->result == 0) {
                size_t n = MIN(piece, text.n);
                _cleanup_(free_ptr) char *copy = xmemdup(text.p, n);

                for (size_t i = 0; i < n; i++)
                        copy[i] = copy[i] == '\'' ? '"' : copy[i];
                s->result = ncu_reader_feed(r, str_n(copy, n), &s->err);
                text = str_n(text.p + n, text.n - n);
        }
        if (s->result == 0)
                s->result = ncu_reader_end(r, &s->err);
        s->layout = ncu_reader_layout(r);
}

/* However it is cut, it gives these launches. */
static void check(const char *text, enum ncu_layout layout, const char *launches)
{
        static const size_t pieces[] = {SIZE_MAX, 1, 2, 3, 7, 64};

        for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
                struct seen s;

                read_in_pieces(&s, str_of(text), pieces[i]);
                if (s.result < 0)
                        fail_msg("in pieces of %zu: %s", pieces[i], s.err.text);
                assert_string_equal(buf_cstr(&s.text), launches);
                assert_int_equal(s.layout, layout);
                buf_done(&s.text);
        }
}

static void check_refused(const char *text, const char *sentence)
{
        struct seen whole, pieces;

        read_in_pieces(&whole, str_of(text), SIZE_MAX);
        read_in_pieces(&pieces, str_of(text), 1);
        assert_true(whole.result < 0 && pieces.result < 0);
        assert_string_equal(whole.err.text, sentence);
        assert_string_equal(pieces.err.text, sentence);
        buf_done(&whole.text);
        buf_done(&pieces.text);
}

/* ---- wide */

#define WIDE_HEADER                                                                         \
        "'ID','Process ID','Process Name','Kernel Name','CC','" MEM "','" TIME "','" SM "'" \
        "\n"
#define WIDE_UNITS "'','','','','','%','ns','%'\n"
#define WIDE_ROW   "'0','9','a.out','add(int, int)','8.6','0.90','4,800','12.50'\n"

static void test_wide(void **state)
{
        check(WIDE_HEADER WIDE_UNITS WIDE_ROW "'1','9','a.out','mul','8.6','61.84','21,058,944','1.30'\n",
              NCU_LAYOUT_WIDE,
              "add(int, int) cc=8.6 sm=12.5 mem=0.9 ns=4800\n"
              "mul cc=8.6 sm=1.3 mem=61.84 ns=21058944\n");
}

static void test_wide_takes_the_unit_of_its_own_column(void **state)
{
        check(WIDE_HEADER "'','','','','','%','us','%'\n"
                          "'0','9','a','k','8.6','0.90','4.80','n/a'\n",
              NCU_LAYOUT_WIDE, "k cc=8.6 mem=0.9 ns=4800\n");
}

static void test_without_units_only_what_needs_none_is_taken(void **state)
{
        check(WIDE_HEADER WIDE_ROW, NCU_LAYOUT_WIDE, "add(int, int) cc=8.6 sm=12.5 mem=0.9\n");
}

static void test_units_may_stand_behind_the_names(void **state)
{
        check("ID,Function Name,Demangled Name," TIME " [us]," SM " [%],SM Frequency [Ghz]\n"
              "0,k,k(int),1.50,7.25,1.2\n",
              NCU_LAYOUT_WIDE, "k(int) sm=7.25 ns=1500\n");
}

static void test_every_column_is_a_name_as_a_whole(void **state)
{
        check("'ID','Kernel "
              "Name','sm__warps_active.max.pct_of_peak_sustained_active','sm__warps_active.avg.pct_of_peak_"
              "sustained_active','dram__throughput.avg.pct_of_peak_sustained_elapsed','gpu__dram_throughput."
              "avg.pct_of_peak_sustained_elapsed','device__attribute_compute_capability_major','device__"
              "attribute_compute_capability_minor','device__attribute_display_name'\n"
              "'','','%','%','%','%','','',''\n"
              "'0','k','120.83','2.08','5.00','0.19','9','0','NVIDIA H100 80GB HBM3'\n"
              "'1','k','120.83','nan','5.00','no data','9','0','NVIDIA H100 80GB HBM3'\n",
              NCU_LAYOUT_WIDE,
              "k cc=9.0 device=NVIDIA H100 80GB HBM3 dram=0.19 occ=2.08\n"
              "k cc=9.0 device=NVIDIA H100 80GB HBM3 dram=5\n");
}

static void test_what_others_say_is_passed_over(void **state)
{
        check("Reading 'file'\n==PROF== Connected to process 9 (/a.out)\n0,1,2\n" WIDE_HEADER
              "==PROF== between\n" WIDE_UNITS "==WARNING== a, 'b', c\n" WIDE_ROW
              "\n'0','9','too short'\n'x','9','a','no number','8','1','1','1'\n"
              "'1','9','a','k','8.6','1.00','7','2.00'\n"
              "Traceback (most recent call last):\n  File '<x>', line 1, in <module>\nLookupError: 'utf",
              NCU_LAYOUT_WIDE,
              "add(int, int) cc=8.6 sm=12.5 mem=0.9 ns=4800\n"
              "k cc=8.6 sm=2 mem=1 ns=7\n");
}

static void test_a_stray_quote_swallows_nothing(void **state)
{
        static const char *const strays[] = {
                "'it begins\n", "x,'it begins\n",   "'\n", "0,'\n", "{'a':1,'b':2}\n",
                "'a','b'c\n",   "'0','9','cut he\n"};

        for (size_t i = 0; i < ARRAY_LEN(strays); i++) {
                _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX);

                buf_printf(&text, "%s%s%s%s%s", strays[i], WIDE_HEADER WIDE_UNITS, strays[i], WIDE_ROW,
                           strays[i]);
                check(buf_cstr(&text), NCU_LAYOUT_WIDE, "add(int, int) cc=8.6 sm=12.5 mem=0.9 ns=4800\n");
        }
}

static void test_a_stray_quote_before_records_without_quotes(void **state)
{
        check("ID,Kernel Name," SM "\n,,%\nsay,'hello\n0,k,1.25\n1,k,2.25", NCU_LAYOUT_WIDE,
              "k sm=1.25\nk sm=2.25\n");
}

/* ---- long */

#define LONG_2020                                                                                           \
        "'ID','Process ID','Kernel Name','Kernel Time','Section Name','Metric Name','Metric Unit','Metric " \
        "Value'\n"
#define LONG_2024                                                                                  \
        "'ID','Process ID','Kernel Name','CC','Section Name','Metric Name','Metric Unit','Metric " \
        "Value','Rule Name'\n"

static void test_long_of_2020(void **state)
{
        check("Reading File\n" LONG_2020
              "'0','7','K(bool*,int)','2020-May-29','GPU Speed Of Light','SOL FB','%','1.33'\n"
              "'0','7','K(bool*,int)','2020-May-29','GPU Speed Of Light','Memory [%]','%','1.34'\n"
              "'0','7','K(bool*,int)','2020-May-29','GPU Speed Of Light','Duration','nsecond','3200'\n"
              "'0','7','K(bool*,int)','2020-May-29','GPU Speed Of Light','SOL L2','%','0.47'\n"
              "'0','7','K(bool*,int)','2020-May-29','GPU Speed Of Light','SM [%]','%','0.28'\n"
              "'0','7','K(bool*,int)','2020-May-29','GPU Speed Of Light','SOL TEX','%','5.59'\n"
              "'1','7','L','2020-May-29','GPU Speed Of Light','SM [%]','%','100'\n",
              NCU_LAYOUT_LONG, "K(bool*,int) sm=0.28 mem=1.34 dram=1.33 l2=0.47 l1=5.59 ns=3200\nL sm=100\n");
}

static void test_long_of_2024_with_rules(void **state)
{
        check(LONG_2024 "'0','7','k<a, b>','7.5','GPU Speed Of Light','Memory Throughput','%','61.84',\n"
                        "'0','7','k<a, b>','7.5','GPU Speed Of Light','Duration','ns','21,058,944',\n"
                        "'0','7','k<a, b>','7.5','GPU Speed Of Light','Compute (SM) Throughput','%','1.30',\n"
                        "'0','7','k<a, b>','7.5','SpeedOfLight','','','','Memory is ''more'' "
                        "heavily\nutilized, than Compute'\n"
                        "'0','7','k<a, b>','7.5','Memory Workload Analysis','Memory "
                        "Throughput','byte/s','196,456.63',\n"
                        "'0','7','k<a, b>','7.5','Occupancy','Achieved Occupancy','%','96.26',\n",
              NCU_LAYOUT_LONG, "k<a, b> cc=7.5 sm=1.3 mem=61.84 occ=96.26 ns=21058944\n");
}

static void test_a_label_counts_in_its_section_and_unit_alone(void **state)
{
        check(LONG_2024 "'0','7','k<a, b>','7.5','My Section','Duration','ns','1',\n"
                        "'0','7','k<a, b>','7.5','My Section','Memory [%]','%','1',\n"
                        "'0','7','k<a, b>','7.5','GPU Speed Of Light','Duration','cycle','2',\n"
                        "'0','7','k<a, b>','7.5','GPU Speed Of Light','Duration','us','3.5',\n"
                        "'0','7','k<a, b>','7.5','My Section','" TIME "','ns','4',\n",
              NCU_LAYOUT_LONG, "k<a, b> cc=7.5 ns=4\n"); /* the full name is better than the label */
}

static void test_body_items_and_nvtx_columns_are_found_by_name(void **state)
{
        check("'ID','Process ID','thread Domain:Push/Pop_Range:PL_Type','Id:Domain:Start/Stop_Range','Kernel "
              "Name','CC','Section Name','Body Item Label','Metric Name','Metric Unit','Metric Value'\n"
              "'0','7','1  ''<default domain>:step:none'' ','','k','8.6','GPU Speed Of "
              "Light','','Duration','ns','4,800'\n"
              "'0','7','1  ''<default domain>:step:none'' ','','k','8.6','GPU Speed Of Light','GPU "
              "Throughput','Memory [%]','%','0.90'\n",
              NCU_LAYOUT_LONG, "k cc=8.6 mem=0.9 ns=4800\n");
}

static void test_metrics_of_the_command_line(void **state)
{
        check(LONG_2024 "'0','7','k<a, b>','7.5','Command line','dram__bytes_op_read.sum','Mbyte','134.22',\n"
                        "'0','7','k<a, b>','7.5','Command line','" TIME "','us','292.93',\n"
                        "'0','7','k<a, b>','7.5','Command line','nothing__known.sum','','n/a',\n",
              NCU_LAYOUT_LONG, "k<a, b> cc=7.5 ns=292930 read=134220000\n");
}

static void test_processes_may_print_in_turns(void **state)
{
        check(LONG_2024 "'0','7','k<a, b>','7.5','GPU Speed Of Light','Duration','ns','1',\n"
                        "'0','8','k<a, b>','7.5','GPU Speed Of Light','Duration','ns','2',\n"
                        "'0','7','k<a, b>','7.5','GPU Speed Of Light','SM [%]','%','3.5',\n"
                        "'0','8','k<a, b>','7.5','GPU Speed Of Light','SM [%]','%','4.5',\n"
                        "'1','7','k<a, b>','7.5','GPU Speed Of Light','Duration','ns','5',\n",
              NCU_LAYOUT_LONG,
              "k<a, b> cc=7.5 sm=3.5 ns=1\nk<a, b> cc=7.5 sm=4.5 ns=2\nk<a, b> cc=7.5 ns=5\n");
}

static void test_no_number_is_lost_when_many_are_mixed(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX);
        struct seen s;
        size_t n = 0;

        buf_adds(&text, LONG_2024);
        for (int round = 0; round < 3; round++)
                for (int process = 0; process < 50; process++)
                        buf_printf(&text, "'0','%d','k','7.5','GPU Speed Of Light','Duration','ns','%d',\n",
                                   process, round);
        read_in_pieces(&s, buf_str(&text), SIZE_MAX);
        assert_int_equal(s.result, 0);
        assert_int_equal(s.launches, 150);
        for (const char *at = buf_cstr(&s.text); (at = strstr(at, " ns=")); at++)
                n++;
        assert_int_equal(n, 150);
        buf_done(&s.text);
}

static void test_one_file_after_another(void **state)
{
        check(LONG_2024
              "'0','7','k<a, b>','7.5','GPU Speed Of Light','Duration','ns','1',\n"
              "\xEF\xBB\xBF" LONG_2024
              "'0','7','k<a, b>','7.5','GPU Speed Of Light','Duration','ns','2',\n" WIDE_HEADER WIDE_UNITS
                      WIDE_ROW,
              NCU_LAYOUT_WIDE,
              "k<a, b> cc=7.5 ns=1\nk<a, b> cc=7.5 ns=2\nadd(int, int) cc=8.6 sm=12.5 mem=0.9 ns=4800\n");
}

static void test_crlf(void **state)
{
        check("\xEF\xBB\xBF==PROF== x\r\n'ID','Kernel Name','Metric Name','Metric Unit','Metric "
              "Value'\r\n"
              "'0','k','Duration','ns','4,800'\r\n'0','k','SM [%]','%','1.25',\r\n"
              "0,k,Memory [%],%,2.25\r\n'0','k','SOL FB','%' ,'3.25'\r",
              NCU_LAYOUT_LONG, "k sm=1.25 mem=2.25 dram=3.25 ns=4800\n");
}

/* ---- the window's export */

static void test_transposed(void **state)
{
        check("\xEF\xBB\xBFID,0,1\nTime,2026-Feb-20 23:32:21,2026-Feb-20 23:32:22\nFunction Name,k,l\n"
              "Demangled Name,'k(int, int)',l\nDevice Name,NVIDIA H800,NVIDIA H800\n"
              "Grid Size,'16384,    2,    1','1,    1,    1'\n" TIME " [us],741.86,n/a\n" SM
              " [%],27.81,1.25\n"
              "breakdown:" SM
              ",'a,b\nc','d'\nsm__warps_active.max.pct_of_peak_sustained_active [%],120.83,1\n"
              "derived__pct_occupancy_per_block_size [%],882 {65},1\ntoo,many,fields,here\n",
              NCU_LAYOUT_TRANSPOSED,
              "k(int, int) device=NVIDIA H800 sm=27.81 ns=741860\nl device=NVIDIA H800 sm=1.25\n");
}

static void test_a_line_of_the_program_is_no_export(void **state)
{
        static const char *const before = "ID,3\n" WIDE_HEADER WIDE_UNITS WIDE_ROW,
                                 *between = WIDE_HEADER WIDE_UNITS "ID,3\n" WIDE_ROW "ID,3\n";

        check(before, NCU_LAYOUT_WIDE, "add(int, int) cc=8.6 sm=12.5 mem=0.9 ns=4800\n");
        check(between, NCU_LAYOUT_WIDE, "add(int, int) cc=8.6 sm=12.5 mem=0.9 ns=4800\n");
}

static void test_transposed_is_bounded(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX);
        struct seen s;

        buf_adds(&text, "ID");
        for (int i = 0; i <= NCU_LAUNCHES_ACROSS_MAX; i++)
                buf_printf(&text, ",%d", i);
        buf_addc(&text, '\n');
        read_in_pieces(&s, buf_str(&text), SIZE_MAX);
        assert_true(s.result < 0);
        assert_int_equal(s.err.code, E_TOO_LARGE);
        buf_done(&s.text);
}

/* ---- text */

static void test_text_of_today(void **state)
{
        check("==PROF== Disconnected from process 7\n[7] a.out@127.0.0.1\n"
              "  void hgemm<1>(const __half *, int (*)(int)) (64, 64, 1)x(16, 8, 1), Context 1, Stream 7, "
              "Device 0, CC 8.0\n"
              "    Section: GPU Speed Of Light Throughput\n"
              "    ----------------------- ----------- ------------\n"
              "    Metric Name             Metric Unit Metric Value\n"
              "    ----------------------- ----------- ------------\n"
              "    DRAM Frequency                  Ghz         1.51\n"
              "    Memory Throughput                 %        73.10\n"
              "    Duration                         ms         2.20\n"
              "    Compute (SM) Throughput           %        53.53\n"
              "    ----------------------- ----------- ------------\n\n"
              "    OPT   Memory is more heavily utilized than Compute: Look at 73.10\n\n"
              "    Section: Memory Workload Analysis\n"
              "    Memory Throughput      Gbyte/second       196.45\n"
              "    Section: Launch Statistics\n"
              "    Waves Per SM                                6.40\n"
              "    Section: Occupancy\n"
              "    Achieved Occupancy                %      no data\n\n"
              "  scale(float *) (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.0\n"
              "    Section: GPU Speed Of Light Throughput\n"
              "    Duration                         us         2.00\n",
              NCU_LAYOUT_TEXT,
              "void hgemm<1>(const __half *, int (*)(int)) cc=8.0 sm=53.53 mem=73.1 waves=6.4 ns=2200000\n"
              "scale(float *) cc=8.0 ns=2000\n");
}

static void test_text_of_2020(void **state)
{
        check("[27599] bfs@127.0.0.1\r\n"
              "  Kernel2(bool*,bool*,int), 2020-May-29 11:51:18, Context 1, Stream 7\r\n"
              "    Section: GPU Speed Of Light\r\n"
              "    Memory [%]                                      %                          91.78\r\n"
              "    SOL DRAM                                        %                           9.08\r\n"
              "    Duration                                  msecond                           2.86\r\n"
              "    SM [%]                                          %                          41.95\r\n",
              NCU_LAYOUT_TEXT, "Kernel2(bool*,bool*,int) sm=41.95 mem=91.78 dram=9.08 ns=2860000\n");
}

static void test_text_raw_page(void **state)
{
        check("  probe (1, 1, 1)x(1, 1, 1), Context 1, Stream 7, Device 0, CC 8.6\n"
              "    device__attribute_display_name                       NVIDIA GeForce RTX 3080 Ti Laptop "
              "GPU\n"
              "    gpu__time_duration.max                    ns         9,999\n"
              "    gpu__time_duration.sum                    ns         4,800\n"
              "    launch__waves_per_multiprocessor                      0.00\n"
              "    profiler__replayer_passes               pass             8\n"
              "    sm__warps_active.max.pct_of_peak_sustained_active  %  120.83\n"
              "    sm__warps_active.avg.pct_of_peak_sustained_active  %    2.08\n"
              "sm__throughput.avg.pct_of_peak_sustained_elapsed % 99.00\n", /* what is not set in is not ncu's */
              NCU_LAYOUT_TEXT,
              "probe cc=8.6 device=NVIDIA GeForce RTX 3080 Ti Laptop GPU occ=2.08 waves=0 ns=4800 "
              "passes=8\n");
}

static void test_text_and_csv_in_one_file(void **state)
{
        check("  probe (1, 1, 1)x(1, 1, 1), Context 1, Stream 7, Device 0, CC 8.6\n"
              "    gpu__time_duration.sum   ns   5\n" WIDE_HEADER WIDE_UNITS WIDE_ROW
              "  other (1, 1, 1)x(1, 1, 1), Context 1, Stream 7, Device 0, CC 8.6\n"
              "    gpu__time_duration.sum   ns   6\n",
              NCU_LAYOUT_TEXT,
              "probe cc=8.6 ns=5\nadd(int, int) cc=8.6 sm=12.5 mem=0.9 ns=4800\nother cc=8.6 ns=6\n");
}

/* ---- numbers in their file */

static void test_the_numbers_of_a_file_show_its_point(void **state)
{
        /* as a tool under a German locale prints */
        check(LONG_2024 "'0','7','k<a, b>','7.5','GPU Speed Of Light','Memory Throughput','%','65,77',\n"
                        "'0','7','k<a, b>','7.5','GPU Speed Of Light','Duration','ns','117.344',\n"
                        "'0','7','k<a, b>','7.5','Launch Statistics','Waves Per SM','','2.048',\n",
              NCU_LAYOUT_LONG, "k<a, b> cc=7.5 mem=65.77 waves=2048 ns=117344\n");
        check(LONG_2024 "'0','7','k<a, b>','7.5','GPU Speed Of Light','Memory Throughput','%','65.77',\n"
                        "'0','7','k<a, b>','7.5','GPU Speed Of Light','Duration','us','1.234',\n"
                        "'0','7','k<a, b>','7.5','Launch Statistics','Waves Per SM','','2,048',\n",
              NCU_LAYOUT_LONG, "k<a, b> cc=7.5 mem=65.77 waves=2048 ns=1234\n");
}

static void test_what_can_be_read_in_two_ways_is_refused_with_its_place(void **state)
{
        check_refused(
                "noise\n" LONG_2024 "'0','7','k<a, b>','7.5','GPU Speed Of Light','Duration','us','1.234',\n",
                "line 3: Duration: '1.234' us can be read in two ways; print the report again with LC_ALL=C");
        check_refused("'ID','Kernel Name','" TIME "'\n'','','ms'\n'0','k','4,800'\n",
                      "line 3: " TIME
                      ": '4,800' ms can be read in two ways; print the report again with LC_ALL=C");
        /* whole nanoseconds, in a file whose comma is the point */
        check_refused(
                LONG_2024 "'0','7','k<a, b>','7.5','GPU Speed Of Light','Memory Throughput','%','65,77',\n"
                          "'0','7','k<a, b>','7.5','GPU Speed Of Light','Duration','ns','4,800',\n",
                "line 3: Duration: '4,800' ns can be read in two ways; print the report again with LC_ALL=C");
        /* both have been the point: nothing is shown any more */
        check_refused(
                LONG_2024 "'0','7','k<a, b>','7.5','GPU Speed Of Light','Memory Throughput','%','65,77',\n"
                          "'0','7','k<a, b>','7.5','GPU Speed Of Light','SM [%]','%','65.77',\n"
                          "'0','7','k<a, b>','7.5','GPU Speed Of Light','Duration','us','4,800',\n",
                "line 4: Duration: '4,800' us can be read in two ways; print the report again with LC_ALL=C");
}

static void test_what_is_no_number_is_refused_with_its_place(void **state)
{
        check_refused(LONG_2024 "\n\n"
                                "'0','7','k<a, b>','7.5','x\ny','" TIME "','ns','1',\n"
                                "'0','8','k<a, b>','7.5','','" SM "','%','abc',\n",
                      "line 6: " SM ": 'abc' is no value of this metric in the unit '%'");
        check_refused(LONG_2024 "'0','7','k<a, b>','7.5','','" TIME "','fortnight','1',\n",
                      "line 2: " TIME ": '1' is no value of this metric in the unit 'fortnight'");
}

/* ---- what cannot be used */

static void test_what_is_not_of_ncu_is_told(void **state)
{
        static const char nothing[] =
                "nothing of Nsight Compute is in it: neither a CSV header with ID and Kernel Name (ncu "
                "--page raw --csv), nor the window's export, nor a kernel's title in text";

        check_refused("", nothing);
        check_refused("hello\nID\nworld", nothing);
        check_refused("a\n" WIDE_HEADER WIDE_UNITS "b\n",
                      "there is a header of Nsight Compute in line 2, but no launch after it");
        check_refused("\xFF\xFEI\nD",
                      "this is UTF-16, as some shells redirect; convert it first: iconv -f UTF-16 -t UTF-8");
}

static void test_a_binary_report_is_told(void **state)
{
        struct seen s;

        read_in_pieces(&s, STR("NVR\0\2\n\0\0"), SIZE_MAX);
        assert_string_equal(s.err.text,
                            "this is a binary report; print it first: ncu --import FILE --page raw --csv");
        buf_done(&s.text);
}

static void add_many(struct buf *b, char c, size_t n)
{
        memset(buf_reserve(b, n), c, n);
        b->n += n;
}

static void test_lines_of_others_may_be_long_but_records_not(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX);
        struct seen s;

        add_many(&text, 'x', 5 << 20);
        buf_adds(&text, "\n" WIDE_HEADER WIDE_UNITS);
        add_many(&text, '"', 5 << 20);
        buf_addc(&text, '\n');
        add_many(&text, 'y', 9 << 20);
        buf_adds(&text, "\n" WIDE_ROW);
        read_in_pieces(&s, buf_str(&text), 1 << 16);
        assert_string_equal(s.err.text, "");
        assert_string_equal(buf_cstr(&s.text), "add(int, int) cc=8.6 sm=12.5 mem=0.9 ns=4800\n");
        buf_done(&s.text);
        buf_adds(&text, "'0','9','");
        add_many(&text, 'z', 5 << 20);
        read_in_pieces(&s, buf_str(&text), 1 << 16);
        assert_string_equal(s.err.text, "line 7: a record has more than 4 MiB");
        buf_done(&s.text);
}

static void test_an_open_quote_that_never_ends_is_given_up(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX);
        struct seen s;

        buf_adds(&text, "ID,Kernel Name," SM "\n,,%\n0,'\n");
        for (int i = 0; i < 600000; i++)
                buf_adds(&text, "0,k,1.25\n");
        read_in_pieces(&s, buf_str(&text), 1 << 16);
        assert_int_equal(s.result, 0);
        assert_int_equal(s.launches, 600000);
        buf_done(&s.text);
}

/* Each line begins a quote that the next one closes and begins again: whoever looks at all of it again for each never ends. */
static void test_quotes_that_never_end_are_refused(void **state)
{
        static const char *const ends[] = {"", "'x'y\n"}; /* the second one is known to be none */

        for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
                _cleanup_(buf_done) struct buf text = BUF_INIT(8 << 20);
                struct seen s;

                buf_adds(&text, "'ID','Kernel Name'\n'0','k'\n");
                for (unsigned n = 0; n < 100000; n++)
                        buf_adds(&text, "x',''',\n");
                buf_adds(&text, ends[i]);
                read_in_pieces(&s, buf_str(&text), SIZE_MAX);
                assert_int_equal(s.result, -1);
                assert_int_equal(s.launches, 1);
                assert_non_null(strstr(s.err.text, "quotes begin here"));
                buf_done(&s.text);
        }
}

/* A record in so many pieces would take hours if each of them were looked at again, or moved, with every other. */
static void test_a_large_record_in_small_pieces(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX);
        struct seen s;

        buf_adds(&text, "'ID','Kernel Name','Rule','" SM "'\n'0','k','");
        for (int i = 0; i < 300000; i++)
                buf_adds(&text, "a\n");
        buf_adds(&text, "','1.25'\n");
        read_in_pieces(&s, buf_str(&text), 1);
        assert_string_equal(buf_cstr(&s.text), "k sm=1.25\n");
        buf_done(&s.text);
}

/* ---- kernels */

static void test_long_names_are_cut_and_stay_apart(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX);
        struct seen s;
        const char *second;

        buf_adds(&text, "ID,Kernel Name," SM "\n");
        for (int i = 0; i < 2; i++) {
                buf_addc(&text, '0');
                buf_addc(&text, ',');
                add_many(&text, 'k', 700);
                buf_printf(&text, "%d,1.25\n", i);
        }
        read_in_pieces(&s, buf_str(&text), SIZE_MAX);
        assert_int_equal(s.result, 0);
        second = strchr(buf_cstr(&s.text), '\n') + 1;
        assert_int_equal(second - s.text.p, NCU_NAME_MAX + strlen(" sm=1.25\n"));
        assert_memory_equal(s.text.p, second, 400);
        assert_memory_not_equal(s.text.p, second, NCU_NAME_MAX);
        buf_done(&s.text);
}

static void test_doubled_quotes_of_a_name_are_single(void **state)
{
        check("'ID','Kernel Name','" SM "'\n'0','op''''_x(char)','1.25'\n", NCU_LAYOUT_WIDE,
              "op\"\"_x(char) sm=1.25\n");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_wide_takes_the_unit_of_its_own_column),
        cmocka_unit_test(test_without_units_only_what_needs_none_is_taken),
        cmocka_unit_test(test_units_may_stand_behind_the_names),
        cmocka_unit_test(test_every_column_is_a_name_as_a_whole),
        cmocka_unit_test(test_what_others_say_is_passed_over),
        cmocka_unit_test(test_a_stray_quote_swallows_nothing),
        cmocka_unit_test(test_a_stray_quote_before_records_without_quotes),
        cmocka_unit_test(test_long_of_2020),
        cmocka_unit_test(test_long_of_2024_with_rules),
        cmocka_unit_test(test_a_label_counts_in_its_section_and_unit_alone),
        cmocka_unit_test(test_body_items_and_nvtx_columns_are_found_by_name),
        cmocka_unit_test(test_metrics_of_the_command_line),
        cmocka_unit_test(test_processes_may_print_in_turns),
        cmocka_unit_test(test_no_number_is_lost_when_many_are_mixed),
        cmocka_unit_test(test_one_file_after_another),
        cmocka_unit_test(test_crlf),
        cmocka_unit_test(test_transposed),
        cmocka_unit_test(test_a_line_of_the_program_is_no_export),
        cmocka_unit_test(test_transposed_is_bounded),
        cmocka_unit_test(test_text_of_today),
        cmocka_unit_test(test_text_of_2020),
        cmocka_unit_test(test_text_raw_page),
        cmocka_unit_test(test_text_and_csv_in_one_file),
        cmocka_unit_test(test_the_numbers_of_a_file_show_its_point),
        cmocka_unit_test(test_what_can_be_read_in_two_ways_is_refused_with_its_place),
        cmocka_unit_test(test_what_is_no_number_is_refused_with_its_place),
        cmocka_unit_test(test_what_is_not_of_ncu_is_told),
        cmocka_unit_test(test_a_binary_report_is_told),
        cmocka_unit_test(test_lines_of_others_may_be_long_but_records_not),
        cmocka_unit_test(test_an_open_quote_that_never_ends_is_given_up),
        cmocka_unit_test(test_quotes_that_never_end_are_refused),
        cmocka_unit_test(test_a_large_record_in_small_pieces),
        cmocka_unit_test(test_long_names_are_cut_and_stay_apart),
        cmocka_unit_test(test_doubled_quotes_of_a_name_are_single),
};
UNIT_MAIN(tests)
