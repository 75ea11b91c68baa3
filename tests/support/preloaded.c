/*
 * preloaded.c - becomes another program with a library preloaded, for tests.
 *
 * berth-launch executes the file that it opened when it began, and a script could not be
 * executed like that.  The file NAME.env beside the program NAME has the path of the other
 * program in its first line, then what its environment is: a line each.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINES_MAX 4

int main(int argc, char *argv[])
{
    static char lines[LINES_MAX][PATH_MAX + 64];
    char path[PATH_MAX];
    char *env[LINES_MAX] = { NULL };
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof ".env");
    if (length < 0)
        return 126;
    snprintf(path + length, sizeof ".env", ".env");
    FILE *file = fopen(path, "re");
    if (!file)
        return 126;
    for (int i = 0; i < LINES_MAX && fgets(lines[i], sizeof lines[i], file); i++) {
        lines[i][strcspn(lines[i], "\n")] = '\0';
        if (i > 0)
            env[i - 1] = lines[i];
    }
    execve(lines[0], argv, env);
    return 127;
}
