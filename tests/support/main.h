/* main.h - included before a unit test with a renamed main(): see unit/together.c. */
#pragma once

int main(void);
