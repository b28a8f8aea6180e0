# Solves mixed integer linear programs with scipy's HiGHS: reads one JSON document per line and writes one per line.
import json
import sys

import numpy
import scipy
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

if sys.argv[1:] == ["version"]:
    print(scipy.__version__)
    sys.exit()

for line in sys.stdin:
    m = json.loads(line)
    rows = csr_matrix((m["values"], m["columns"], m["starts"]), shape=(len(m["starts"]) - 1, len(m["cost"])))
    number = lambda values: numpy.array([float(v) for v in values])
    options = {"mip_rel_gap": m["gap"]}
    if m["seconds"] > 0:
        options["time_limit"] = m["seconds"]
    r = milp(
        c=m["cost"],
        constraints=LinearConstraint(rows, number(m["low"]), number(m["high"])),
        bounds=Bounds(number(m["lower"]), number(m["upper"])),
        integrality=m["integer"],
        options=options,
    )
    real = lambda v: None if v is None or not numpy.isfinite(v) else float(v)
    answer = {
        "status": int(r.status),
        "message": str(r.message),
        "objective": real(r.fun),
        "bound": real(getattr(r, "mip_dual_bound", None)),
        "values": None if r.x is None else [float(v) for v in r.x],
    }
    print(json.dumps(answer), flush=True)
