/*
 * The init container: the binary, the FIFO, a clean directory, the last checkpoint.
 */
#include "run/pod.h"
