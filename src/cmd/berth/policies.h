/* policies.h - printing the settings of workload presets, as those of policies are. */
#pragma once

#include <stdio.h>

/* All generators of workloads, each with its settings. */
void policies_print_presets(FILE *file);
