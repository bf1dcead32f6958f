/*
 * reader_internal.h - between the parts that read what ncu wrote.
 *
 *   reader.c   bytes into records and lines, launches out
 *   csv.c      records: the three layouts of CSV
 *   text.c     lines: the pages as text
 *   metrics.c  names, units, numbers
 */
#pragma once

#include "probe/ncu/ncu.h"

/* ---- metrics.c */

/* What a name stands for beside the metrics. */
enum {
        NCU_IS_KERNEL = NCU_METRICS,
        NCU_IS_DEVICE,
        NCU_IS_CC,
        NCU_IS_CC_MAJOR,
        NCU_IS_CC_MINOR,
};

enum ncu_name_kind {
        NCU_NAME_FULL,
        NCU_NAME_LABEL,     /* in a unit that does not fit it is another metric's */
        NCU_NAME_SOL_LABEL, /* and in another section than the Speed of Light too */
};

struct ncu_name {
        struct str text;
        unsigned what; /* enum ncu_metric, or NCU_IS_… */
        unsigned rank; /* among the names of one meaning; 0 is best */
        enum ncu_name_kind kind;
};

enum { NCU_NAMES_MAX = 64 };

/* NULL: nothing that is wanted. */
const struct ncu_name *ncu_name_find(struct str name);
/* The same for "name [unit]"; RET_UNIT is STR_NULL where there is none. */
const struct ncu_name *ncu_name_find_with_unit(struct str name, struct str *ret_unit);
bool ncu_section_fits(const struct ncu_name *name, struct str section); /* "": not said */
bool ncu_unit_fits(enum ncu_metric m, struct str unit);

/*
 * As ncu_value_read(), with what the numbers before have shown; and it learns from this one. POINT is what they have for a
 * decimal point: '.', ',', 0 when nothing has shown it yet, '?' when both.
 */
enum ncu_value ncu_value_read_after(enum ncu_metric m, struct str text, struct str unit, char *point,
                                    double *ret);

/* ---- reader.c */

enum {
        NCU_SLOTS = NCU_NAMES_MAX + 8, /* fields of a record that are looked at */
        NCU_OPEN_MAX = 8,              /* launches whose rows may come mixed: several processes, one output */
        NCU_UNIT_MAX = 16,
        NCU_ID_MAX = 24,
};

/* A launch that is being put together. */
struct ncu_open {
        struct ncu_launch launch;
        uint8_t rank[NCU_METRICS];
        unsigned kernel_rank;
        char major[8], minor[8];
        char id[NCU_ID_MAX], process[NCU_ID_MAX];
        size_t id_n, process_n;
};

/* How far a record has been looked through; places count from its first byte. */
struct ncu_scan {
        size_t at, field, close;
        uint32_t column; /* of `field` */
        uint32_t taken;  /* slots that are filled */
        int state;
        struct {
                uint32_t from, n;
        } slot[NCU_SLOTS];
};

/* The columns that tell what a record is. */
enum ncu_column_kind {
        NCU_COLUMN_ID,
        NCU_COLUMN_PROCESS,
        NCU_COLUMN_SECTION,
        NCU_COLUMN_NAME,
        NCU_COLUMN_UNIT,
        NCU_COLUMN_VALUE,
        NCU_COLUMN_KINDS,
};

/* A column that is looked at. */
struct ncu_column {
        const struct ncu_name *name; /* a metric or an attribute; NULL: one of the above */
        char unit[NCU_UNIT_MAX];
};

struct ncu_reader {
        void (*on_launch)(void *arg, const struct ncu_launch *launch);
        void *arg;
        enum ncu_layout layout; /* of what is being read */
        enum ncu_layout seen;   /* of the last launch */
        uint64_t line;          /* where the record begins */
        uint64_t header_line;   /* 0: none seen */
        uint64_t launches;
        uint64_t fed;   /* bytes */
        uint64_t again; /* bytes of what was none of ours, which were looked at again */
        bool skip;      /* to the end of the line */
        char point;     /* of its numbers, as ncu_value_read_after() has it */

        struct buf begun; /* a record that is not whole yet; SCAN says how far it is known */
        struct ncu_scan scan;

        /* CSV: the columns that are looked at, in their order, and what the header has */
        uint32_t wanted[NCU_SLOTS + 1]; /* ended by UINT32_MAX */
        struct ncu_column columns[NCU_SLOTS];
        uint32_t n_columns;               /* that are looked at */
        uint32_t width;                   /* all of them */
        unsigned where[NCU_COLUMN_KINDS]; /* the slot of a column that is there once; NCU_SLOTS: none */
        bool units_due;                   /* the next record may be that of the units */

        /* a ring; the newest is the last */
        struct ncu_open open[NCU_OPEN_MAX];
        unsigned first_open, n_open;

        struct ncu_open *across; /* the window's export: one a column */
        size_t n_across;

        char section[64]; /* of the text */
};

/* A launch that begins; the oldest goes out when there are too many. */
struct ncu_open *ncu_open_new(struct ncu_reader *r);
void ncu_open_clear(struct ncu_open *o);
/* What is there is whole. */
void ncu_open_flush(struct ncu_reader *r);
/* Gives a launch to whoever reads. */
void ncu_open_give(struct ncu_reader *r, struct ncu_open *o);
/* Takes the value of NAME over. Below 0: it cannot be read for sure. */
int ncu_open_take(struct ncu_reader *r, struct ncu_open *o, const struct ncu_name *name, struct str text,
                  struct str unit, struct err *err) _must_check_;

/* ---- csv.c */

/* 1: LINE is the header of a layout, which is read from here on. */
int ncu_csv_header(struct ncu_reader *r, struct str line, struct err *err) _must_check_;
/* 1: RECORD, which has just been scanned, is one of the layout's. */
int ncu_csv_record(struct ncu_reader *r, struct str record, struct err *err) _must_check_;
/* Whether what has been scanned of a record that goes on has a launch's number. */
bool ncu_csv_has_id(const struct ncu_reader *r, struct str record);

/* ---- text.c */

int ncu_text_line(struct ncu_reader *r, struct str line, struct err *err) _must_check_;
