"""The weights for those that cannot read the package's own file: a folder as Hugging Face has them.

python -m bench.engine.weights PRECISION FOLDER
python -m bench.engine.weights --openvino OPTIMUM-CLI
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CACHE = Path(os.environ.get("BENCH_ENGINE", Path(__file__).parents[2] / ".treadle" / "bench-engine"))


def folder_of(precision: str) -> Path:
    """The folder with the weights in `float32` or `bfloat16`, written once."""
    folder = CACHE / precision
    if not (folder / "config.json").exists():
        subprocess.run(
            [sys.executable, "-m", "bench.engine.weights", precision, str(folder)],
            cwd=Path(__file__).parents[2],
            check=True,
        )
    return folder


def openvino_folder() -> Path:
    """The same as OpenVINO has it; see `main`."""
    return CACHE / "openvino"


def main() -> None:
    """Write one of the folders, in a process whose memory is nobody's."""
    if sys.argv[1] == "--openvino":
        words = ["--task", "text-generation-with-past", "--weight-format", "fp32", openvino_folder()]
        subprocess.run([sys.argv[2], "export", "openvino", "-m", folder_of("float32"), *words], check=True)
    else:
        _write(*sys.argv[1:])


def _write(precision: str, folder: str) -> None:
    """Read the GGUF file by transformers, which is what the others would do, and write it again."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from treadle.engine.catalog import locate

    gguf = locate("smollm2-135m-instruct")
    given = {"gguf_file": gguf.name, "local_files_only": True}
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=getattr(torch, precision), **given)
    # The numbers are no longer quantised, which the model does not know.
    del model.config.quantization_config
    model.hf_quantizer = None
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, **given).save_pretrained(folder)


if __name__ == "__main__":
    main()
