"""Serve a model file with llama.cpp's own HTTP server until the input ends.

python serve.py MODEL PORT
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(model: str, port: str) -> None:
    """Load the model, listen, wait."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when it is loaded
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"small"}
    params.port = int(port)
    params.n_ctx = 4096
    params.n_parallel = 2
    params.n_predict = 64  # replies of a tiny model need not be long
    params.n_batch = params.n_ubatch = 128
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    params.verbosity = -1
    params.fit_params = False
    params.warmup = False
    params.ui = False
    params.use_jinja = True
    params.chat_template = (Path(__file__).parent / "tools.jinja").read_text("utf-8")
    params.sampling.temp = 0.0
    server = xllamacpp.Server(params)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main(*sys.argv[1:])
