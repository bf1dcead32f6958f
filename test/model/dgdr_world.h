/*
 * dgdr_world.h - DynamoGraphDeploymentRequests, to be explored.
 */
#pragma once

#include "model/world.h"

enum { SPEC_AUTO_APPLY = SPEC_OWN };

extern const struct subject dgdr_subject;
