import sys, time, os
import numpy as np
import tensorflow_lite_clone as torch
from examples.cifar.models import resnet20
from tensorflow_lite_clone.dispatch.layouts import conversions
from tensorflow_lite_clone.dispatch import hooks
import cupy
from collections import Counter
F = torch.nn.functional
free = os.environ.get("TENSORFLOW_LITE_CLONE_FREE_LAYOUTS", "1")
tag = "free" if free != "0" else "rows"
torch.manual_seed(0)
model = resnet20().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
x = torch.randn(128, 3, 32, 32).cuda(); y = torch.randint(10, (128,)).cuda()
def step(x, y):
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    return loss.detach()
for _ in range(3): step(x, y)
torch.cuda.synchronize()
conversions.clear()
names = Counter()
def launching(name, file, grid, block):
    names[name.split("<")[0]] += 1
    return lambda: None
hooks.launches.append(launching)
step(x, y)
hooks.launches.clear()
print(tag, "conversions a step", dict(conversions))
print(tag, "launches", dict(names), sum(names.values()))
def timed(f, n, k=5):
    out = []
    for _ in range(k):
        a, b = cupy.cuda.Event(), cupy.cuda.Event()
        a.record()
        for _ in range(n): f()
        b.record(); b.synchronize()
        out.append(cupy.cuda.get_elapsed_time(a, b) / n * 1e3)
    return sorted(out)[k // 2]
print(tag, "eager us", timed(lambda: step(x, y), 8))
if free != "0":
    import cProfile, pstats
    p = cProfile.Profile(); p.enable()
    for _ in range(10): step(x, y)
    p.disable(); torch.cuda.synchronize()
cstep = torch.compile(step, fullgraph=True)
for _ in range(4): cstep(x, y)
print(tag, "captured us", timed(lambda: cstep(x, y), 30))
if free != "0":
    def graph_us(f, n=20):
        s = cupy.cuda.Stream(non_blocking=True)
        with s:
            for _ in range(3): f()
            s.synchronize()
            s.begin_capture()
            for _ in range(n): keep = f()
            g = s.end_capture()
        g.launch(); torch.cuda.synchronize()
        return timed(lambda: g.launch(), 5) / n
    from tensorflow_lite_clone import backends
    K = backends.load("cuda").F
    r = lambda *s: cupy.random.default_rng(0).standard_normal(s, dtype=cupy.float32)
    cl = lambda a: a.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)
    for shape in ((128, 64, 8, 8), (128, 16, 32, 32), (128, 32, 16, 16)):
        a, b = r(*shape), r(*shape); A, B = cl(a), cl(b)
        row = {}
        out = cupy.empty_like(A)
        for name, f in {
            "mean rows": lambda: a.sum((2, 3)), "mean last": lambda: A.sum((2, 3)),
            "kit add last": lambda: K.add(A, B), "kit add rows": lambda: K.add(a, b),
            "kit add mixed": lambda: K.add(A, b), "cupy add last": lambda: A + B,
            "iadd last": lambda: A.__iadd__(B), "iadd rows": lambda: a.__iadd__(b),
            "copy C of last": lambda: K.copy(A), "cupy C of last": lambda: A.copy(order="C"),
            "bring last": lambda: K.restride(a, strides=tuple(s // 4 for s in A.strides)),
            "strided": lambda: A[:, :, ::2, ::2].copy(),
        }.items():
            try:
                row[name] = round(graph_us(f), 2)
            except Exception as e:
                row[name] = repr(e)[:60]
        print(shape, row)
