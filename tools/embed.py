#!/usr/bin/env python3
"""A file as a C function: embed.py IN OUT.c HEADER FUNCTION

The function returns the file's bytes and their count, as the header declares it; a NUL that
is not counted follows.
"""
import sys


def main():
    source, target, header, function = sys.argv[1:]
    with open(source, "rb") as file:
        data = file.read()
    rows = (data[at : at + 24] for at in range(0, len(data), 24))
    body = "\n".join("    " + ",".join(str(byte) for byte in row) + "," for row in rows)
    with open(target, "w", encoding="ascii") as file:
        file.write(
            f'#include "{header}"\n\n'
            f"static const unsigned char bytes[] = {{\n{body}\n    0,\n}};\n\n"
            f"const char *{function}(size_t *ret_count)\n{{\n"
            f"    *ret_count = sizeof bytes - 1;\n"
            f"    return (const char *)bytes;\n}}\n"
        )


if __name__ == "__main__":
    main()
