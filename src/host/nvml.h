/* nvml.h - NVIDIA's management library, if installed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct nvml;

#define NVML_PROCESSES_MAX 256

/* NULL: not installed, or it finds no driver.  'path' NULL: the usual name. */
struct nvml *nvml_open(const char *path);
void nvml_close(struct nvml *nvml);

uint32_t nvml_count(const struct nvml *nvml);

/* Its name and a permanent id; false: it does not answer. */
bool nvml_describe(const struct nvml *nvml, uint32_t index, char name[96],
                   char uuid[96]);

/* Percent of the last moment in which it computed; -1: unknown. */
int nvml_busy(const struct nvml *nvml, uint32_t index);

/* Processes that compute on it; returns how many. */
uint32_t nvml_processes(const struct nvml *nvml, uint32_t index,
                        int pids[NVML_PROCESSES_MAX]);
