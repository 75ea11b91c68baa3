"""Builds the package for pip without fetching anything: it is a handful of text files.

    pip install ./python
"""
import base64
import hashlib
import os
import re
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def _read(name):
    with open(os.path.join(HERE, name), "rb") as file:
        return file.read()


def _field(name):
    text = _read("pyproject.toml").decode("utf-8")
    return re.search(rf'(?m)^{name} = "(.*)"$', text).group(1)


def _metadata():
    return (f"Metadata-Version: 2.1\nName: berth\nVersion: {_field('version')}\n"
            f"Summary: {_field('description')}\nLicense: MIT\n"
            f"Requires-Python: {_field('requires-python')}\n").encode("utf-8")


def _sources():
    folder = os.path.join(HERE, "berth")
    return [f"berth/{name}" for name in sorted(os.listdir(folder)) if name.endswith(".py")]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info = f"berth-{_field('version')}.dist-info"
    files = {name: _read(name) for name in _sources()}
    files[f"{info}/METADATA"] = _metadata()
    files[f"{info}/WHEEL"] = (b"Wheel-Version: 1.0\nGenerator: berth\n"
                              b"Root-Is-Purelib: true\nTag: py3-none-any\n")
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode("utf-8")
    wheel = f"berth-{_field('version')}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    top = f"berth-{_field('version')}"
    with tarfile.open(os.path.join(sdist_directory, f"{top}.tar.gz"), "w:gz") as archive:
        for name in ["pyproject.toml", "backend.py", *_sources()]:
            archive.add(os.path.join(HERE, name), f"{top}/{name}")
    return f"{top}.tar.gz"
