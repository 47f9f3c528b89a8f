import time, statistics, sys, os
import numpy as np, cupy, torch
import tensorflow_lite_clone as tlc
from cupy_backends.cuda.api.driver import launchKernel

def host(f, n=2000, reps=7):
    f(); f()
    cupy.cuda.Device().synchronize(); torch.cuda.synchronize()
    best=[]
    for _ in range(reps):
        t=time.perf_counter()
        for _ in range(n//reps): f()
        best.append((time.perf_counter()-t)/(n//reps)*1e6)
        cupy.cuda.Device().synchronize(); torch.cuda.synchronize()
    return statistics.median(best)
def row(name, a, b=None):
    try: x=host(a)
    except Exception as e: x=repr(e)[:80]
    y=host(b) if b else 0
    print(f"{name:28s} {x if isinstance(x,str) else round(x,2)}  torch {y:.2f}", flush=True)
dev='cuda'
a=tlc.randn(1024,device=dev); b=tlc.randn(1024,device=dev); ga=tlc.randn(1024,device=dev,requires_grad=True)
ta=torch.randn(1024,device=dev); tb=torch.randn(1024,device=dev); tga=torch.randn(1024,device=dev,requires_grad=True)
x=a._storage.array; y=b._storage.array
f=tlc.nn.functional; tf=torch.nn.functional
row('a+b',lambda:a+b,lambda:ta+tb)
row('a+b grad',lambda:ga+b,lambda:tga+tb)
row('a*2.0',lambda:a*2.0,lambda:ta*2.0)
row('a.exp',lambda:a.exp(),lambda:ta.exp())
row('relu',lambda:f.relu(a),lambda:tf.relu(ta))
row('gelu',lambda:f.gelu(a),lambda:tf.gelu(ta))
row('gelu fwd+bwd',lambda:f.gelu(ga).backward(a),lambda:tf.gelu(tga).backward(ta))
row('silu fwd+bwd',lambda:f.silu(ga).backward(a),lambda:tf.silu(tga).backward(ta))
row('exp fwd+bwd',lambda:ga.exp().backward(a),lambda:tga.exp().backward(ta))
row('a.add_(b)',lambda:a.add_(b),lambda:ta.add_(tb))
row('a.mul_(1.0)',lambda:a.mul_(1.0),lambda:ta.mul_(1.0))
row('sum',lambda:a.sum(),lambda:ta.sum())
row('addcmul',lambda:tlc.addcmul(a,b,b,value=.5),lambda:torch.addcmul(ta,tb,tb,value=.5))
row('where',lambda:tlc.where(a>0,a,b),lambda:torch.where(ta>0,ta,tb))
print('--- pieces')
from tensorflow_lite_clone.backends.cupy.fusion import formula as launch
add=launch.formula('add',lambda F,x,y:x+y,None)
add(x,y); row('formula add',lambda:add(x,y))
row('cupy.add',lambda:cupy.add(x,y))
z=cupy.empty_like(x)
addi=launch.in_place(add)
row('in_place',lambda:addi(x,y))
row('cupy.empty',lambda:cupy.empty((1024,),np.float32))
F4=np.dtype('f4')
row('ndarray(shape,dtype)',lambda:cupy.ndarray((1024,),F4))
row('alloc',lambda:cupy.cuda.alloc(4096))
pool=cupy.get_default_memory_pool()
row('pool.malloc',lambda:pool.malloc(4096))
mp=cupy.cuda.alloc(4096)
row('ndarray(memptr)',lambda:cupy.ndarray((1024,),F4,mp))
row('ndarray(memptr,strides)',lambda:cupy.ndarray((1024,),F4,mp,(4,)))
row('x.view',lambda:x.view())
row('get_current_stream().ptr',lambda:cupy.cuda.get_current_stream().ptr)
row('getDevice',lambda:cupy.cuda.runtime.getDevice())
from tensorflow_lite_clone.autograd.apply import wrap
bk=a._storage.backend
row('wrap',lambda:wrap(x,bk))
row('noop',lambda:None)
print('--- eager cnn', flush=True)
from tests.bench.cuda_steps import training_step
st=training_step(tlc,'cnn',128,captured=False)
for _ in range(5): st()
def med(st):
    ts=[]
    for _ in range(30):
        t=time.perf_counter(); st(); ts.append((time.perf_counter()-t)*1e6)
        cupy.cuda.Device().synchronize()
    return statistics.median(ts)
print('eager step host us', med(st), flush=True)
tst=training_step(torch,'cnn',128)
for _ in range(5): tst()
ts=[]
for _ in range(30):
    t=time.perf_counter(); tst(); ts.append((time.perf_counter()-t)*1e6); torch.cuda.synchronize()
print('torch eager host us', statistics.median(ts), flush=True)
print('--- device, captured 20 replays')
def device(fn, lib):
    if lib=='tlc':
        fn()
        stream=cupy.cuda.Stream(non_blocking=True)
        keep=[]
        with stream:
            fn(); stream.synchronize()
            stream.begin_capture()
            for _ in range(20): keep.append(fn())
            g=stream.end_capture()
            times=[]
            for _ in range(7):
                e0,e1=cupy.cuda.Event(),cupy.cuda.Event()
                e0.record(stream); g.launch(stream); e1.record(stream); e1.synchronize()
                times.append(cupy.cuda.get_elapsed_time(e0,e1)*1e3/20)
        return statistics.median(times)
    fn(); torch.cuda.synchronize()
    g=torch.cuda.CUDAGraph()
    keep=[]
    with torch.cuda.graph(g):
        for _ in range(20): keep.append(fn())
    times=[]
    for _ in range(7):
        e0,e1=torch.cuda.Event(enable_timing=True),torch.cuda.Event(enable_timing=True)
        e0.record(); g.replay(); e1.record(); e1.synchronize()
        times.append(e0.elapsed_time(e1)*1e3/20)
    del keep, g
    return statistics.median(times)
for dt in ('float32',):
    D=getattr(tlc,dt); T=getattr(torch,dt)
    A=tlc.randn(4096,4096,device=dev).to(D); B=tlc.randn(4096,4096,device=dev).to(D)
    TA=torch.randn(4096,4096,device=dev).to(T); TB=torch.randn(4096,4096,device=dev).to(T)
    v=tlc.randn(4096,device=dev).to(D); tv=torch.randn(4096,device=dev).to(T)
    c=tlc.randn(4096,1,device=dev).to(D); tc=torch.randn(4096,1,device=dev).to(T)
    F=A._storage.backend.F
    cases=[('copy',lambda:A.clone(),lambda:TA.clone()),('x+y',lambda:A+B,lambda:TA+TB),('x*2',lambda:A*2.0,lambda:TA*2.0),
      ('exp',lambda:A.exp(),lambda:TA.exp()),('gelu(override)',lambda:f.gelu(A),lambda:tf.gelu(TA)),
      ('x+row',lambda:A+v,lambda:TA+tv),('x+col',lambda:A+c,lambda:TA+tc),('x+y.T',lambda:A+B.T,lambda:TA+TB.T),
      ('x<y',lambda:A<B,lambda:TA<TB),('addcmul',lambda:tlc.addcmul(A,B,B,value=.5),lambda:torch.addcmul(TA,TB,TB,value=.5)),
      ('to',lambda:A.to(tlc.float32 if dt!='float32' else tlc.bfloat16),lambda:TA.to(torch.float32 if dt!='float32' else torch.bfloat16)),
      ('sum(0)',lambda:A.sum(0),lambda:TA.sum(0)),('sum(1)',lambda:A.sum(1),lambda:TA.sum(1)),('sum',lambda:A.sum(),lambda:TA.sum())]
    for n,p,q in cases:
        try: m=device(p,'tlc')
        except Exception as e: m=repr(e)[:100]
        print(f"{dt} {n:16s} ours {m if isinstance(m,str) else round(m,1)} torch {device(q,'torch'):.1f}",flush=True)
    from tensorflow_lite_clone.ops.activation_smooth import Gelu, gelu_backward
    a_=A._storage.array;b_=B._storage.array
    fz=launch.formula('gelu',Gelu.forward,None); bz=launch.formula('gelu_backward',gelu_backward,None)
    print(dt,'gelu generated',round(device(lambda:fz(a_),'tlc'),1),'bwd generated',round(device(lambda:bz(a_,b_),'tlc'),1))
g=tlc.randn(128,64,32,32,device=dev); tg=torch.randn(128,64,32,32,device=dev)
gl=g.to(memory_format=tlc.channels_last); tgl=tg.to(memory_format=torch.channels_last)
w=tlc.randn(128,10,device=dev); tw=torch.randn(128,10,device=dev)
h=tlc.randn(8192,1024,device=dev).bfloat16(); th=torch.randn(8192,1024,device=dev).bfloat16()
for n,p,q in [('bias nchw',lambda:g.sum((0,2,3)),lambda:tg.sum((0,2,3))),('bias nhwc',lambda:gl.sum((0,2,3)),lambda:tgl.sum((0,2,3))),
   ('bias linear 128x10',lambda:w.sum(0),lambda:tw.sum(0)),('avgpool nchw',lambda:g.mean((2,3)),lambda:tg.mean((2,3))),('avgpool nhwc',lambda:gl.mean((2,3)),lambda:tgl.mean((2,3))),
   ('bf16 sum(0) 8192x1024',lambda:h.sum(0),lambda:th.sum(0)),('bf16 sum(1)',lambda:h.sum(1),lambda:th.sum(1)),('bf16 sum',lambda:h.sum(),lambda:th.sum()),
   ('max(1)',lambda:A.amax(1),lambda:TA.amax(1)),('max(0)',lambda:A.amax(0),lambda:TA.amax(0)),('mish',lambda:f.mish(A),lambda:tf.mish(TA)),
   ('mish bf16',lambda:f.mish(h),lambda:tf.mish(th)),('gelu bf16',lambda:f.gelu(h),lambda:tf.gelu(th)),('silu',lambda:f.silu(A),lambda:tf.silu(TA)),('clone bf16',lambda:h.clone(),lambda:th.clone())]:
    try: m=device(p,'tlc')
    except Exception as e: m=repr(e)[:100]
    print(f"{n:24s} ours {m if isinstance(m,str) else round(m,1)} torch {device(q,'torch'):.1f}",flush=True)

print('--- captured steps', flush=True)
for name,b in (('mlp',32),('cnn',128),('vit',128)):
    st=training_step(tlc,name,b)
    for _ in range(6): st()
    ts=[]
    for _ in range(5):
        cupy.cuda.Device().synchronize(); t=time.perf_counter()
        for _ in range(20): st()
        cupy.cuda.Device().synchronize(); ts.append((time.perf_counter()-t)/20*1e6)
    print(name,b,round(statistics.median(ts),1),flush=True)
