/*
 * gcov_exit.c - an _exit() that leaves what gcov counted.
 *
 * Counts are written by a handler of exit(), which _exit() passes over.  Linked with
 * --wrap=_exit into the programs that end so, and only in a tree that counts.
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
