/*
 * example.h - the example controller in its two forms: over ConfigMaps, and over Samples (test/tools/example/crd.yaml).
 */
#pragma once

#include "decide/decide.h"

extern const struct controller EXAMPLE_CONFIGMAPS, EXAMPLE_SAMPLES;
