"""Model files as somebody would make them who means harm: their checksums fit."""

import hashlib
import io
import json
import os
import zipfile

import numpy as np

MANIFEST, CONTENT = "manifest.json", "model.json"


class Bomb:
    """What a pickle of it does when it is opened is to make a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def parts_of(path):
    """Return name -> bytes of the members of a file."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(path, parts, packing=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, part in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), part, packing)
    return path


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def encode(thing):
    return json.dumps(thing, separators=(",", ":")).encode()


def forged(path, parts, **changes):
    """Write parts with a manifest that fits them, but for the changes."""
    manifest = json.loads(parts[MANIFEST])
    del manifest["checksum"]
    manifest["parts"] = {name: sha256(parts[name]) for name in parts if name != MANIFEST}
    manifest |= changes
    manifest["checksum"] = sha256(encode(manifest))
    return zipped(path, {**parts, MANIFEST: encode(manifest)})


def with_content(path, made, change):
    """Write a file like the one that was made, with another content: change(document) -> document."""
    parts = parts_of(made)
    return forged(path, {**parts, CONTENT: encode(change(json.loads(parts[CONTENT])))})


def npy(array=None, **header):
    """Return an .npy file, with another header where one is given."""
    stream = io.BytesIO()
    if not header:
        np.save(stream, array)
        return stream.getvalue()
    np.lib.format.write_array_header_1_0(stream, {"fortran_order": False, "descr": "<f8", **header})
    return stream.getvalue() + (b"" if array is None else array.tobytes())
