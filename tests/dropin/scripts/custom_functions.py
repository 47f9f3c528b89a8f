"""Functions with gradients of one's own, checkpointing, hooks, accumulation, anomaly mode, mixed precision."""
import torch
import torch.nn as nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Quantize(Function):
    """Round with a straight-through gradient."""

    @staticmethod
    def forward(ctx, input, levels):
        ctx.save_for_backward(input)
        return torch.round(input * levels) / levels

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        return grad_output * (input.abs() <= 1).to(grad_output.dtype), None


class Swish(Function):
    @staticmethod
    def forward(i):
        return i * torch.sigmoid(i)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(False)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        i = ctx.saved_tensors[0]
        s = torch.sigmoid(i)
        return grad_output * (s * (1 + i * (1 - s)))


class Reverse(Function):
    @staticmethod
    def forward(ctx, x, lambda_):
        ctx.lambda_ = lambda_
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grads):
        return -ctx.lambda_ * grads.clone(), None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.Tanh()) for _ in range(4)])
        self.head, self.domain = nn.Linear(8, 3), nn.Linear(8, 2)

    def forward(self, x):
        x = checkpoint_sequential(self.body, 2, x, use_reentrant=False)
        x = Quantize.apply(x, 16)
        x = checkpoint(Swish.apply, x, use_reentrant=False)
        return self.head(x), self.domain(Reverse.apply(x, 0.5))


torch.manual_seed(17)
model = Net()
norms = {}
for name, p in model.named_parameters():
    p.register_hook(lambda g, name=name: norms.__setitem__(name, g.norm().item()))
model.head.register_full_backward_hook(lambda m, gi, go: norms.__setitem__('head', gi[0].abs().mean().item()))
model.register_forward_pre_hook(lambda m, args: (args[0].clamp(-2, 2),))
optimizer = torch.optim.ASGD(model.parameters(), lr=0.1, lambd=1e-3, t0=10)
clip = torch.optim.lr_scheduler.ChainedScheduler([
    torch.optim.lr_scheduler.ConstantLR(optimizer, 0.5, 5), torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97)])
criterion = nn.MultiMarginLoss()
for step in range(20):
    optimizer.zero_grad()
    total = 0.0
    for part in range(2):
        x, y, d = torch.randn(8, 8), torch.randint(3, (8,)), torch.randint(2, (8,))
        with torch.autograd.set_detect_anomaly(step == 0):
            label, domain = model(x + y[:, None])
            loss = (criterion(label, y) + 0.1 * nn.functional.cross_entropy(domain, d)) / 2
            loss.backward()
        total += loss.item()
    total_norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, norm_type=2)
    optimizer.step()
    clip.step()
    print(step, f'{total:.5f} norm {total_norm:.5f} head {norms["head"]:.6f} first {norms["body.0.0.weight"]:.6f}')
autoencoder = nn.Sequential(nn.Conv1d(2, 4, 3, 2, 1), nn.ReLU6(), nn.ConvTranspose1d(4, 2, 4, 2, 1))
optimizer = torch.optim.Rprop(autoencoder.parameters(), lr=0.005)
signal = torch.randn(4, 2, 16)
for step in range(5):
    with torch.autocast('cpu', dtype=torch.bfloat16, enabled=True):
        out = autoencoder(signal)
    loss = nn.functional.huber_loss(out.float(), signal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(str(out.dtype), f'{loss.item():.1f}')
