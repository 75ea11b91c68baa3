/*
 * together.c - unit tests in one program, for tools that take long to start.
 *
 *     unit_together            print the names of all tests
 *     unit_together NAME...    run these
 */
#include <stdio.h>
#include <string.h>

#define ONE(name) int main_of_##name(void);
TESTS
#undef ONE

static const struct {
    const char *name;
    int (*run)(void);
} all[] = {
#define ONE(name) { #name, main_of_##name },
    TESTS
#undef ONE
};

#define COUNT (sizeof all / sizeof *all)

/* 0 if nothing failed; an unknown name is a failure. */
static int run_test(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].run();
    fprintf(stderr, "no test '%s'\n", name);
    return 1;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (size_t i = 0; argc < 2 && i < COUNT; i++)
        puts(all[i].name);
    for (int i = 1; i < argc; i++)
        failed |= run_test(argv[i]) != 0;
    return failed;
}
