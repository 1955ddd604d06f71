"""The examples at the end of `--help`: a description of each, and a complete command.

`tests/cli/test_examples.py` runs all of them, in this order, in a folder with the files they name.
"""

from __future__ import annotations

SHAPE = '"f32[100,300]{0,1:T(8,128)}"'

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "tilejit": (
        ("see it at work", "tilejit demo --mib 16"),
        ("into another layout, and back", "tilejit pack model.safetensors packed.safetensors --layout tpu"),
        ("", "tilejit unpack packed.safetensors again.safetensors"),
        ("where each element lives", 'tilejit show "f32[3,5]{1,0:T(2,2)}"'),
    ),
    "tilejit demo": (("a 16 MiB matrix, on two threads", "tilejit demo --mib 16 --threads 2"),),
    "tilejit pack": (
        ("an array; also prints the command that unpacks it", "tilejit pack x.npy y.npy --layout tpu"),
        ("a format with parameters", "tilejit pack x.npy panels.npy --layout blis-a mr=4"),
        (
            "the tensors of a model, as bf16",
            "tilejit pack model.safetensors packed.safetensors --layout tpu --dtype bf16",
        ),
        (
            "the sizes of a packed directory, by rules",
            "tilejit pack model/ packed/ --rules rules.toml --layout tpu --dry-run",
        ),
        (
            "from standard input to standard output",
            "tilejit pack - - --quiet --layout tpu < x.npy > packed.npy",
        ),
    ),
    "tilejit unpack": (
        ("an array that pack wrote", "tilejit unpack y.npy x2.npy"),
        ("a dump of raw bytes", 'tilejit unpack dump.bin x4.npy --shape "bf16[3,5]{1,0:T(8,128)(2,1)}"'),
        ("the tensors of a model", "tilejit unpack packed.safetensors model2.safetensors"),
        (
            "in a pipe",
            f"tilejit pack - - -q --layout tpu < x.npy | tilejit unpack - - -q --shape {SHAPE} > x3.npy",
        ),
    ),
    "tilejit relayout": (
        ("a packed array", "tilejit relayout y.npy z.npy --layout blis-a mr=4"),
        (
            "the packed tensors of a model",
            "tilejit relayout packed.safetensors other.safetensors --layout tenstorrent tile=16",
        ),
    ),
    "tilejit check": (
        ("a packed array and a packed model", "tilejit check y.npy packed.safetensors"),
        ("a directory, as JSON", "tilejit check model --json"),
    ),
    "tilejit show": (
        ("where each element lives", 'tilejit show "bf16[4,8]{1,0:T(2,4)(2,1)}"'),
        ("a named format", 'tilejit show "f32[16,16]" --layout tenstorrent'),
        ("what a file holds, and one of its tensors", "tilejit show packed.safetensors"),
        ("", "tilejit show packed.safetensors w"),
        ("as a picture", 'tilejit show "f32[3,5]{1,0:T(2,2)}" --svg > layout.svg'),
        ("a layout from standard input", 'echo "f32[3,5]{1,0:T(2,2)}" | tilejit show -'),
    ),
    "tilejit view": (
        ("a page to explore the layout", 'tilejit view "bf16[4096,4096]{1,0:T(8,128)(2,1)}" -o layout.html'),
        ("a tensor of a file", "tilejit view packed.safetensors w -o w.html"),
        ("a CuTe layout, to standard output", 'tilejit view "(4,8):(8,1)" -o - > cute.html'),
    ),
    "tilejit explain": (
        ("how a pack is compiled", 'tilejit explain C "bf16[1000,300]{1,0:T(8,128)(2,1)}"'),
        ("only the kernels", 'tilejit explain C "f32[1000,300]{1,0:T(8,128)}" --stage source'),
    ),
    "tilejit formats": (
        ("all of them", "tilejit formats"),
        ("one of them, for your own array", "tilejit formats blis-a mr=4 --dims 10,6 --dtype f32"),
    ),
    "tilejit vectorize": (
        (
            "Python functions, two loops vectorized",
            "tilejit vectorize add.py --virtual-vector-size 32,256",
        ),
        ("the same from standard input", "tilejit vectorize - --python < add.py"),
        (
            "MLIR from standard input; needs pip install 'tilejit[mlir]'",
            "tilejit vectorize - --virtual-vector-size 32,256 --fastest-varying 1,0 < add.mlir",
        ),
        (
            "with the options of mlir-opt",
            "tilejit vectorize - --options virtual-vector-size=32,256 < add.mlir",
        ),
    ),
    "tilejit calibrate": (("for another process", "tilejit calibrate --json > machine.json"),),
    "tilejit cache": (("where it is, and how large", "tilejit cache info"),),
    "tilejit cache info": (("as JSON", "tilejit cache info --json"),),
    "tilejit cache warm": (
        ("the kernels of two formats", 'tilejit cache warm tpu "blis-a, mr=8"'),
        ("the kernels of NumPy's transposes", "tilejit cache warm"),
    ),
    "tilejit cache verify": (
        ("check every kernel, and remove damaged ones", "tilejit cache verify --repair"),
    ),
    "tilejit cache clear": (("remove all kernels", "tilejit cache clear"),),
}
