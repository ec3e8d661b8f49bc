"""The weights for those that cannot read the package's own file: Hugging Face folders and GGUF files.

python -m bench.engine.weights                          write what is missing
python -m bench.engine.weights --openvino OPTIMUM-CLI   and the folder for OpenVINO

All hold the same numbers: those of the package's file, which are quantised, written out in float32, and
rounded from there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.places import ROOT

CACHE = Path(os.environ.get("BENCH_ENGINE", ROOT / ".treadle" / "bench-engine"))
FOLDERS = ("float32", "bfloat16")
FILES = {"float32": "F32", "bfloat16": "BF16", "int8": "Q8_0"}
"""Precision -> what GGUF calls it."""


def folder_of(precision: str) -> Path:
    """The folder with the weights in `float32` or `bfloat16`."""
    return _written(CACHE / precision, "config.json")


def gguf_of(precision: str) -> Path:
    """The GGUF file with the weights in one of `FILES`."""
    return _written(CACHE / f"{precision}.gguf", "")


def openvino_folder() -> Path:
    """The same as OpenVINO has it."""
    return _written(CACHE / "openvino", "openvino_model.xml")


def main() -> None:
    """Write what is missing, each in a process whose memory is nobody's."""
    if len(sys.argv) == 2 and sys.argv[1] != "--openvino":
        _write(sys.argv[1])
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    for name in (*FOLDERS, *(f"{each}.gguf" for each in FILES)):
        if not (CACHE / name).exists():
            subprocess.run([sys.executable, "-m", "bench.engine.weights", name], cwd=ROOT, check=True)
    if len(sys.argv) == 3 and not (CACHE / "openvino").exists():
        words = ["--task", "text-generation-with-past", "--weight-format", "fp32", str(CACHE / "openvino")]
        subprocess.run([sys.argv[2], "export", "openvino", "-m", folder_of("float32"), *words], check=True)


def _written(path: Path, inside: str) -> Path:
    if not (path / inside).exists():
        raise SystemExit(
            f"{path.name}: not written yet: python -m bench.engine.weights [--openvino OPTIMUM-CLI]"
        )
    return path


def _write(name: str) -> None:
    partial = CACHE / f"{name}.partial"
    if name in FOLDERS:
        _write_folder(name, partial)
    else:
        _write_gguf(FILES[name.removesuffix(".gguf")], partial)
    partial.rename(CACHE / name)


def _write_folder(precision: str, folder: Path) -> None:
    """Read the package's file by transformers, which is what the others would do, and write it again."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    gguf = _source()
    given = {"gguf_file": gguf.name, "local_files_only": True}
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=getattr(torch, precision), **given)
    # The numbers are no longer quantised, which the model does not know.
    del model.config.quantization_config
    model.hf_quantizer = None
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, **given).save_pretrained(folder)


def _write_gguf(kind: str, path: Path) -> None:
    """The same file with other numbers: matrices of `kind`, vectors in float32."""
    import gguf

    reader, wanted = gguf.GGUFReader(_source()), gguf.GGMLQuantizationType[kind]
    field = reader.get_field("general.architecture")
    writer = gguf.GGUFWriter(path, field.contents() if field else "llama")
    writer.add_file_type({"F32": 0, "BF16": 32, "Q8_0": 7}[kind])
    for each in reader.fields.values():
        if not each.name.startswith("GGUF.") and each.name not in (
            "general.architecture",
            "general.file_type",
        ):
            inner = each.types[-1] if len(each.types) > 1 else None
            writer.add_key_value(each.name, each.contents(), each.types[0], sub_type=inner)
    for tensor in reader.tensors:
        numbers = gguf.dequantize(tensor.data, tensor.tensor_type)
        as_type = wanted if len(tensor.shape) > 1 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(tensor.name, gguf.quantize(numbers, as_type), raw_dtype=as_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _source() -> Path:
    from treadle.engine.catalog import locate

    return locate("smollm2-135m-instruct")


if __name__ == "__main__":
    main()
