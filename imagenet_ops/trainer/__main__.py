"""python -m imagenet_ops.trainer STORE_URL JOB_KEY: one process of the gang; DMLC_ROLE says which."""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings


def main() -> None:
    # mxnet 1.9.1 uses names that numpy 1.23 warns of.
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", category=FutureWarning)
    if os.environ["DMLC_ROLE"] != "worker":
        import mxnet  # noqa: F401  the import is the scheduler's or the server's whole life: it returns for workers only

        sys.exit("mxnet did not take this process for a scheduler or server")
    _, store_url, job_key = sys.argv
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    from imagenet_ops.adapters.object_store import open_store
    from imagenet_ops.trainer.fit import fit

    fit(open_store(store_url), job_key)


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:
        if isinstance(error, SystemExit) and not error.code:
            raise
        traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        # A usual exit would wait for the other workers in the key-value store's destructor, for ever.
        os._exit(1)
