/* what_if_print.h - the figures of 'berth what-if' as tables. */
#pragma once

#include <stdio.h>

struct what_if;

void what_if_print(const struct what_if *what, FILE *file);
