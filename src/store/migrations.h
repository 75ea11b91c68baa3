/*
 * migrations.h - SQL that changes the tables from one version to the next.
 *
 * schema.sql makes version 1; migrations[0] changes that into version 2, and so on.  A
 * released one is never edited.
 */
#pragma once

#define MIGRATIONS_COUNT 12
#define MIGRATIONS_VERSION (1 + MIGRATIONS_COUNT) /* of the newest tables */

extern const char *const migrations[MIGRATIONS_COUNT];
