import sys, statistics, time
begin = time.time()
import cupy, numpy as np
from tensorflow_lite_clone.core.flags import flags
flags.cudnn_allow_tf32 = True
from tensorflow_lite_clone.backends.cupy import overrides  # noqa
from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.backends.cupy import convolution as C, convolution_hopper as H, batch_norm as B
from tensorflow_lite_clone.backends.cupy.convolution_layout import by_pixels, new_array
from tensorflow_lite_clone.backends.cupy.fusion.deferred import chain
native = {kind.name: v for kind, v in NATIVE.items()}
stream = cupy.cuda.Stream(non_blocking=True)
def timed(f, times=4, rounds=7):
    with stream:
        f(); stream.synchronize()
        stream.begin_capture()
        for _ in range(times): f()
        g = stream.end_capture()
        g.launch(stream); stream.synchronize()
        found = []
        for _ in range(rounds):
            a, b = cupy.cuda.Event(), cupy.cuda.Event()
            a.record(stream); g.launch(stream); b.record(stream); b.synchronize()
            found.append(cupy.cuda.get_elapsed_time(a, b) * 1e3 / times)
    return statistics.median(found)
print("| dtype | c | size | plan | rows | conv | with moments | both + finish | finish alone | moments 3 8 alone | +f 2 8 | 3 8 | 3 4 | 4 4 | 6 4 | sums + finish 2 8 | 2 4 | 3 4 |")
for dtype in ("float32", "bfloat16"):
    for c, h in ((64, 32), (128, 16), (256, 8), (512, 4)):
        n = 512
        w = (cupy.random.standard_normal((c, c, 3, 3), dtype=cupy.float32) * (9 * c) ** -0.5).astype(native[dtype])
        x = cupy.random.standard_normal((n, h, h, c), dtype=cupy.float32).astype(native[dtype]).transpose(0, 3, 1, 2)
        y = new_array((n, c, h, h), x.dtype, True)
        px = by_pixels(x, 1); rows = C._rows(w, 1, False)
        geometry = ((1, 1), (1, 1), (1, 1))
        ready = H.prepare(y.shape, (h, h), c, (3, 3), geometry, False, y.itemsize, 132)[0]
        got = []
        def conv(asked):
            chain.on = True
            H.gather(px, rows, None, y, (h, h), (3, 3), geometry, False, False, 132, True)
            got[:] = [chain.moments(y)] if asked else []
            chain.flush(); chain.on = False
        mean, var = cupy.empty(c, "f4"), cupy.empty(c, "f4")
        rm, rv = cupy.zeros(c, "f4"), cupy.ones(c, "f4")
        def finish():
            m = got[0]
            B._finish[mean.dtype, mean.dtype](B.ceil_div(c, 4), 512, m, c, m.shape[1], 1.0, 0.1, rm, rv, mean, var)
        def both(): conv(True); finish()
        wide = B._rows(y, True, y)
        partials = cupy.empty((3, 2000, c), "f4")
        sums = cupy.empty((2, c), "f4"); gw = cupy.empty(c, "f4"); gb = cupy.empty(c, "f4")
        def moments(blocks, least, end=True):
            parts, chunk = wide.parts(blocks, least)
            B._moments[y.dtype, mean.dtype, mean.dtype, wide.width, True](wide.tiles * parts, wide.block, y, c, wide.packs, wide.length, parts, chunk, 1.0, 0.1, rm, rv, mean, var, partials)
            if end: B._finish[mean.dtype, mean.dtype](B.ceil_div(c, 4), 512, partials, c, parts, 1.0, 0.1, rm, rv, mean, var)
        def back(blocks, least):
            parts, chunk = wide.parts(blocks, least)
            B._sums[y.dtype, mean.dtype, mean.dtype, wide.width, True](wide.tiles * parts, wide.block, x, y, mean, var, 1e-5, c, wide.packs, wide.length, parts, chunk, sums, gw, gb, partials)
            B._finish_sums[mean.dtype, mean.dtype](c, 128, partials, var, 1e-5, c, parts, sums, gw, gb)
        t = [timed(lambda: conv(False)), timed(lambda: conv(True)), timed(both), timed(finish), timed(lambda: moments(3, 8, False))]
        t += [timed(lambda: moments(*of)) for of in ((2, 8), (3, 8), (3, 4), (4, 4), (6, 4))]
        t += [timed(lambda: back(*of)) for of in ((2, 8), (2, 4), (3, 4))]
        print(f"| {dtype} | {c} | {h} | {tuple(ready.shape)} {ready.grid} | {ready.rows} | " + " | ".join(f"{v:.1f}" for v in t) + " |", flush=True)
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.dispatch import table
kit = backends.load("cuda:0").F
for last in (False, True):
    for dtype in ("float32", "bfloat16"):
        x, g = [cupy.random.standard_normal((128, 32, 32, 64), dtype=cupy.float32).astype(native[dtype]) for _ in range(2)]
        x, g = [v.transpose(0, 3, 1, 2) if last else v.reshape(128, 64, 32, 32) for v in (x, g)]
        w, b, rm, rv = [cupy.ones(64, "f4") for _ in range(4)]
        y, mean, var = table.overrides["batch_norm", "cupy"](kit, x, w, b, rm, rv, momentum=0.1, eps=1e-5)
        f = timed(lambda: table.overrides["batch_norm", "cupy"](kit, x, w, b, rm, rv, momentum=0.1, eps=1e-5))
        k = timed(lambda: table.overrides["batch_norm_backward", "cupy"](kit, g, x, w, mean, var, eps=1e-5, needs=(True, True, True)))
        print("batch norm 128x64x32x32", dtype, "NHWC" if last else "NCHW", round(f, 1), round(k, 1), flush=True)
print(round(time.time() - begin, 1), "s")
