/*
 * history - finished runs, kept.
 *
 * Planned; this header is the design until the code is here. A row is a run of any kind: its key, shape, machine,
 * image, spec hash, phase and step durations, samples and outcome. SQLite in one file by default; PostgreSQL when
 * asked for, its library opened only then, so that nobody else pays for it.
 *
 * What the layer will own: the tables and their migrations, retention by age and count, the questions asked of them
 * (how long did a run of this shape take, how did this algorithm develop), and the worker that talks to the database,
 * because a database blocks and the loop must not.
 *
 * A row is an upsert keyed by (request UID, attempt) and is committed before the status says that the run ended.
 *
 * What it must not do: be needed to decide correctly (it gives priors, and an empty history is an ordinary state);
 * run SQL on the loop's thread; keep what is secret (environment values, tokens).
 */
#pragma once

#include "base/base.h"
