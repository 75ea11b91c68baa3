/* main.h - put before a unit test whose main() gets another name: see unit/together.c. */
#pragma once

int main(void);
