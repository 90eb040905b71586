"""Shapes in signatures are checked while tests run, in every module that states one.

Imported before whitelab. The rest of whitelab goes unchecked: a check costs ten times what most of its functions do.
"""

from jaxtyping import install_import_hook
from processes import ROOT

MODULES = [
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for file in sorted((ROOT / "whitelab").rglob("*.py"))
    if "from jaxtyping import" in file.read_text(encoding="utf-8")
]
install_import_hook(MODULES, "beartype.beartype")
