/*
 * Finished runs in SQLite, on the loop's worker thread.
 */
#include "history/history.h"
