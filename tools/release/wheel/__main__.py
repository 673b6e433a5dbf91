"""python -m rdzv: runs the program rdzv in place of this process."""

import os
import sys

from rdzv import find_rdzv_bin

if __name__ == "__main__":
    # This interpreter runs "exec train.py" without "--", as under torchrun, and "exec -- python3".
    os.environ.setdefault("RDZV_PYTHON", sys.executable)
    try:
        program = find_rdzv_bin()
        os.execv(program, [program] + sys.argv[1:])
    except OSError as error:
        sys.exit("rdzv: cannot run the program of this package: %s" % error)
