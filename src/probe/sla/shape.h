/*
 * shape.h - what the reader of a configuration needs of shape.c.
 */
#pragma once

#include "probe/sla/sla.h"

/* The architectures that are served as a mixture of experts. */
bool shape_is_moe(const char *architecture);
