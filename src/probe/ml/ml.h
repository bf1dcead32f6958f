/*
 * ml.h - machine-learning algorithms: which there are, and the program that runs them.
 *
 * The adapters are Python, one file a framework, in python/frameworks/. The build packs them into one archive that
 * python3 runs as it stands (ML_PROGRAM), and asks them what they take (ML_TABLE), so that their files are the only place
 * where parameters are named. Where else the frameworks' names stand is checked by test/structure/frameworks.py.
 *
 *     sonde-pod ml '{"framework": "sklearn", "task": "feature_selection", "algorithm": "random_forest",
 *                    "datasetSize": 10000, "nFeatures": 100, "nSelect": 20, "parameters": {"n_estimators": 100}}'
 *
 * Every member may be left out: the framework is sklearn then; without a task the algorithm is trained and scored; without an
 * algorithm parameters.algorithm says it, or it is random_forest; without datasetSize SONDE_INPUT_SIZE counts.
 * docs/ml.md has the rest. What comes out is in SONDE_METRICS_FILE, or on standard output where there is none.
 *
 * Parameters are checked by the adapters, before any data is made: a wrong one fails its own algorithm and no other.
 */
#pragma once

#include "json/json.h"

/* A zip archive with a __main__.py. */
extern const unsigned char ML_PROGRAM[];
extern const size_t ML_PROGRAM_LEN;

/* JSON: {"tasks": {NAME: {"parameters": {NAME: WHAT}}}, "algorithms": [NAME...], "frameworks": {NAME: {"needs": TEXT,
 * "tasks": [NAME...], "parameters": {NAME: WHAT}, "algorithms": {NAME: {NAME: WHAT}}}}}. WHAT is for people. */
extern const char ML_TABLE[];

enum { ML_UNAVAILABLE = 69 }; /* the exit status when a framework, or Python, is not in the image */

/* Whether these names exist, each NULL where it is not said; E_INVALID: which does not, and which do. Whether a framework
 * has all tasks and algorithms is for its adapter to say. */
int ml_check(const char *framework, const char *task, const char *algorithm, struct err *err) _must_check_;
