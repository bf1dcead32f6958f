/*
 * manifests.h - what installs the operator, as in deploy/, inside the program. The definitions of the kinds (crds.h) come first.
 */
#pragma once

/* YAML documents. deploy/base, deploy/namespaced, deploy/postgres */
extern const char MANIFESTS_BASE[], MANIFESTS_NAMESPACED[], MANIFESTS_POSTGRES[];
