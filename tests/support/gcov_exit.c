/*
 * gcov_exit.c - an _exit() that writes the counts of gcov.
 *
 * They are written by a handler of exit(), which _exit() skips.  Linked with --wrap=_exit
 * into the programs that call it, and only in a tree for coverage.
 */
#include <gcov.h>
#include <unistd.h>

void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));

void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}
