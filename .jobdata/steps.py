import os, sys, time, statistics, traceback
begin=time.time()
import torch
import tensorflow_lite_clone as tlc
from tests.bench.contenders import CONTENDERS
from tests.bench.measure import prepared, release
from tests.bench.timing import in_turns
from tests.bench.rows import ROWS
from tensorflow_lite_clone.backends.cupy.fusion.deferred import Chain
sums = Chain.sums
print("imports", round(time.time()-begin,1), flush=True)
warm = len(sys.argv) > 2
calls = {}
for key in sys.argv[1].split(","):
    name, _, plain = key.partition("=")
    Chain.sums = (lambda *args: None) if plain else sums
    try:
        call, peak = prepared(ROWS[name], CONTENDERS["ours captured"])
        print(key, round(peak / 2**20), "MiB loss", float(call()), round(time.time()-begin,1), flush=True)
        if not warm:
            calls[key] = call
            times = in_turns({"ours": call}, rounds=5, budget=0.01, wait=torch.cuda.synchronize)
            print(key, round(statistics.median(times["ours"]) * 1e6, 1), "us", flush=True)
    except Exception:
        traceback.print_exc()
if not warm:
    import torch.profiler
    from tests.bench import breakdown
    file = open(os.environ["OUT"] + "/profile.md", "a")
    for key, call in calls.items():
        events = breakdown.records(call, 2)
        print(breakdown.table(key, events, 2, by_shape=True), file=file, flush=True)
        print("profiled", key, round(time.time()-begin,1), flush=True)
