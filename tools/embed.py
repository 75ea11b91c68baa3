#!/usr/bin/env python3
"""Files as a C function: embed.py OUT.c HEADER FUNCTION FILE...

The function returns a file's bytes and their count, as the header declares it; a NUL that
is not counted follows.  Of several files it is asked for one by name, and returns NULL where
there is none.
"""
import os
import sys


def write_bytes(data):
    rows = (data[at : at + 24] for at in range(0, len(data), 24))
    return "\n".join("    " + ",".join(str(byte) for byte in row) + "," for row in rows)


def main():
    target, header, function, *sources = sys.argv[1:]
    text = f'#include "{header}"\n\n#include <string.h>\n\n'
    find = ""
    for number, source in enumerate(sources):
        with open(source, "rb") as file:
            body = write_bytes(file.read())
        text += f"static const unsigned char bytes_{number}[] = {{\n{body}\n    0,\n}};\n\n"
        name = os.path.basename(source)
        found = (f"    *ret_count = sizeof bytes_{number} - 1;\n"
                 f"    return (const char *)bytes_{number};\n")
        find += found if len(sources) == 1 else f'    if (strcmp(name, "{name}") == 0) {{\n{found}    }}\n'
    asked = "" if len(sources) == 1 else "const char *name, "
    text += f"const char *{function}({asked}size_t *ret_count)\n{{\n{find}"
    text += "}\n" if len(sources) == 1 else "    *ret_count = 0;\n    return NULL;\n}\n"
    with open(target, "w", encoding="ascii") as file:
        file.write(text)


if __name__ == "__main__":
    main()
