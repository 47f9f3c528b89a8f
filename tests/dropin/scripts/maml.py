"""Model-agnostic meta-learning of sines: weights as a list, second-order gradients, and by torch.func."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap

torch.manual_seed(5)


def net(x, params):
    x = F.linear(x, params[0], params[1]).relu()
    x = F.linear(x, params[2], params[3]).relu()
    return F.linear(x, params[4], params[5])


params = [
    torch.Tensor(20, 1).uniform_(-1., 1.).requires_grad_(), torch.Tensor(20).zero_().requires_grad_(),
    torch.Tensor(20, 20).uniform_(-1. / math.sqrt(20), 1. / math.sqrt(20)).requires_grad_(),
    torch.Tensor(20).zero_().requires_grad_(),
    torch.Tensor(1, 20).uniform_(-1. / math.sqrt(20), 1. / math.sqrt(20)).requires_grad_(),
    torch.Tensor(1).zero_().requires_grad_(),
]
opt = torch.optim.Adam(params, lr=1e-3)
for it in range(12):
    loss2 = 0.0
    opt.zero_grad()
    for task in range(3):
        amplitude, phase = torch.rand(()) * 4 + 1, torch.rand(()) * math.pi
        x = torch.rand(10, 1) * 10 - 5
        y = amplitude * torch.sin(x + phase)
        v_x = torch.rand(10, 1) * 10 - 5
        v_y = amplitude * torch.sin(v_x + phase)
        fast = params
        for k in range(2):
            loss = F.mse_loss(net(x, fast), y)
            grads = torch.autograd.grad(loss, fast, create_graph=True)
            fast = [p - 0.01 * g for p, g in zip(fast, grads)]
        loss2 = loss2 + F.mse_loss(net(v_x, fast), v_y)
    loss2 = loss2 / 3
    loss2.backward()
    opt.step()
    print('Iteration %d -- Outer Loss: %.4f' % (it, loss2))

model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)


def inner(parameters, x, y):
    return F.mse_loss(functional_call(model, parameters, (x,)), y)


def outer(parameters, x, y, v_x, v_y):
    gradients = grad(inner)(parameters, x, y)
    adapted = {name: p - 0.1 * gradients[name] for name, p in parameters.items()}
    return inner(adapted, v_x, v_y)


for it in range(12):
    phase = torch.rand(4, 1, 1) * math.pi
    x, v_x = torch.rand(2, 4, 10, 1) * 10 - 5
    losses = vmap(outer, in_dims=(None, 0, 0, 0, 0))(
        dict(model.named_parameters()), x, torch.sin(x + phase), v_x, torch.sin(v_x + phase))
    optimizer.zero_grad()
    losses.mean().backward()
    optimizer.step()
    print(it, losses.mean().item(), losses.std().item())
