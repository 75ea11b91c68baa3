/* nvml.h - NVIDIA's management library, if it is there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct nvml;

#define NVML_PROCESSES_MAX 256

/* NULL: there is none, or it finds no driver.  'path' NULL: the usual name. */
struct nvml *nvml_open(const char *path);
void nvml_close(struct nvml *nvml);

uint32_t nvml_count(const struct nvml *nvml);

/* Its name, and an id that stays; false: it does not answer. */
bool nvml_describe(const struct nvml *nvml, uint32_t index, char name[96],
                   char uuid[96]);

/* In which share of the last moment it computed, in percent; -1: it does not say. */
int nvml_busy(const struct nvml *nvml, uint32_t index);

/* Processes that compute on it; returns how many were written. */
uint32_t nvml_processes(const struct nvml *nvml, uint32_t index,
                        int pids[NVML_PROCESSES_MAX]);
