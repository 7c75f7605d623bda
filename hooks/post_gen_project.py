"""Move the rendered module into its project, register it and prove it. Cookiecutter renders this file and runs it."""

import sys

if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the folder for temporary files, where anyone may have put a `json.py`

import json

# Answers are data: JSON in a raw literal, whose quote is the one that `tojson` escapes.
# fmt: off
context = json.loads(r'''{{ cookiecutter | tojson }}''')
template = json.loads(r'''{{ template_for(cookiecutter) | tojson }}''')
# fmt: on
sys.path.insert(0, template["source"])

from tripy_module.generate import generate

sys.exit(generate(context, template))
