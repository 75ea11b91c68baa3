"""Where packages go below a prefix so that this Python finds them there, if it can.

    place.py PREFIX
"""
import os
import site
import sys

prefix = os.path.normpath(sys.argv[1])
for path in sys.path + [site.getusersitepackages()]:
    if path.startswith(os.path.join(prefix, "lib")) and path.endswith("-packages"):
        break
else:
    version = "%d.%d" % sys.version_info[:2]
    path = os.path.join(prefix, "lib", "python" + version, "site-packages")
print(path)
