/*
 * client.c - a job in C: it reports, stops when it must and goes on where it was.
 *
 *     cc -o job examples/client.c $(pkg-config --cflags --libs berth-client) -lm
 *     berth run -G1 ./job [STEPS [MICROSECONDS_PER_STEP]]
 *
 * It looks for the least of (x - 3)^2 by going downhill, one small step at a time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <berth/client.h>

struct model {
    unsigned long step;
    double x;
};

static const char *place(void)
{
    static char path[4096];
    const char *folder = getenv("BERTH_CKPT_DIR");
    snprintf(path, sizeof(path), "%s/model.txt", folder ? folder : ".");
    return path;
}

static struct model load(void)
{
    struct model model = { 0, -4 };
    FILE *file = fopen(place(), "r");
    if (!file)
        return model;
    if (fscanf(file, "%lu %la", &model.step, &model.x) != 2)
        model = (struct model){ 0, -4 };
    fclose(file);
    return model;
}

/* Whole or not at all: a kill while writing must not cost the checkpoint of before. */
static int save(const struct model *model)
{
    char part[4104];
    snprintf(part, sizeof(part), "%s.part", place());
    FILE *file = fopen(part, "w");
    if (!file)
        return -1;
    int wrong = fprintf(file, "%lu %a\n", model->step, model->x) < 0;
    wrong |= fflush(file) != 0 || fsync(fileno(file)) != 0;
    wrong |= fclose(file) != 0;
    return wrong ? -1 : rename(part, place());
}

int main(int argc, char **argv)
{
    unsigned long steps = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000;
    unsigned long pause = argc > 2 ? strtoul(argv[2], NULL, 10) : 5000;
    struct berth_client *berth = berth_client_new();
    struct model model = load();

    printf("from step %lu\n", model.step);
    fflush(stdout);
    berth_client_total(berth, steps);
    while (model.step < steps && !berth_client_must_stop(berth)) {
        model.x -= 0.01 * (model.x - 3);
        model.step++;
        double loss = pow(model.x - 3, 2);
        berth_client_report(berth, model.step, loss);
        if (model.step % 100 == 0) {
            printf("step %lu loss %.6f\n", model.step, loss);
            fflush(stdout);
        }
        usleep((useconds_t)pause);
    }
    if (save(&model) < 0) {
        perror(place());
        return 1;
    }
    berth_client_saved(berth, model.step);
    berth_client_free(berth);
    printf("%s step %lu\n", model.step < steps ? "stopped at" : "done", model.step);
    return model.step < steps ? BERTH_EXIT_SAVED : 0;
}
