/*
 * The relay: its life, from the claim to the end.
 */
#include "run/relay.h"
