#!/usr/bin/python3
"""The layers of src/: each has one public header, includes only the layers above it, and of those only what is public.

A layer's public headers are those that its own header (src/json/json.h) brings along; all others are internal.
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, main

LAYERS = ("base json net kube run stats probe history decide kinds operator local web cli").split()
SRC = os.path.join(ROOT, "src")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def files():
    """Every C file of src/, as a path from there."""
    for path, _, names in os.walk(SRC):
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(path, name), SRC)


def includes(file):
    with open(os.path.join(SRC, file), encoding="utf-8") as f:
        return INCLUDE.findall(f.read())


def public_headers(layer):
    """What <layer>/<layer>.h brings along of its own layer, and itself."""
    found, todo = set(), [f"{layer}/{layer}.h"]
    while todo:
        header = todo.pop()
        if header in found or not os.path.exists(os.path.join(SRC, header)):
            continue
        found.add(header)
        todo += [h for h in includes(header) if h.startswith(layer + "/")]
    return found


def nothing_wrong(complaints):
    assert not complaints, "\n" + "\n".join(complaints)


def every_folder_is_a_layer_and_has_its_public_header():
    folders = {name for name in os.listdir(SRC) if os.path.isdir(os.path.join(SRC, name))}
    nothing_wrong([f"src/{name} is not a layer" for name in sorted(folders - set(LAYERS))])
    nothing_wrong([f"src/{name}/{name}.h is missing" for name in LAYERS
                   if not os.path.exists(os.path.join(SRC, name, name + ".h"))])


def every_public_header_says_first_what_it_is_for():
    bad = []
    for layer in LAYERS:
        for header in sorted(public_headers(layer)):
            with open(os.path.join(SRC, header), encoding="utf-8") as f:
                if not re.match(r"/\*\n \* [\w./-]+ - \S", f.read()):
                    bad.append(f"src/{header}: its first lines are not '/*', ' * {os.path.basename(header)} - what it is for'")
    nothing_wrong(bad)


def includes_name_their_layer():
    nothing_wrong([f"src/{file}: \"{header}\" is not written as \"layer/file.h\"" for file in files()
                   for header in includes(file) if header.split("/")[0] not in LAYERS or "/" not in header])


def a_layer_includes_only_those_above_it():
    bad = []
    for file in files():
        own = LAYERS.index(file.split("/")[0])
        for header in includes(file):
            layer = header.split("/")[0]
            if layer in LAYERS and LAYERS.index(layer) > own:
                bad.append(f"src/{file}: includes \"{header}\", a layer below its own")
    nothing_wrong(bad)


def internal_headers_stay_inside_their_layer():
    public = set().union(*(public_headers(layer) for layer in LAYERS))
    nothing_wrong([f"src/{file}: \"{header}\" is internal to its layer" for file in files() for header in includes(file)
                   if header.split("/")[0] != file.split("/")[0] and header not in public])


def every_included_header_exists():
    nothing_wrong([f"src/{file}: \"{header}\" does not exist" for file in files() for header in includes(file)
                   if not os.path.exists(os.path.join(SRC, header))])


main(every_folder_is_a_layer_and_has_its_public_header, every_public_header_says_first_what_it_is_for,
     includes_name_their_layer, a_layer_includes_only_those_above_it, internal_headers_stay_inside_their_layer,
     every_included_header_exists)
