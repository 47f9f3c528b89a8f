"""PixelCNN: a Conv2d subclass with a mask, gated blocks, sampling pixel by pixel, cyclic rates."""
import torch
from torch import nn, optim
from torch.nn import functional as F


class MaskedConv2d(nn.Conv2d):
    def __init__(self, mask_type, *args, **kwargs):
        super(MaskedConv2d, self).__init__(*args, **kwargs)
        assert mask_type in {'A', 'B'}
        self.register_buffer('mask', self.weight.data.clone())
        _, _, kH, kW = self.weight.size()
        self.mask.fill_(1)
        self.mask[:, :, kH // 2, kW // 2 + (mask_type == 'B') :] = 0
        self.mask[:, :, kH // 2 + 1 :] = 0

    def forward(self, x):
        self.weight.data *= self.mask
        return super(MaskedConv2d, self).forward(x)


class GatedBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.v = nn.Conv2d(d, 2 * d, (2, 3), 1, (2 // 2, 1))
        self.h = nn.Conv2d(d, 2 * d, (1, 2), padding=(0, 1))
        self.v2h = nn.Conv2d(2 * d, 2 * d, 1)
        self.o = nn.Conv2d(d, d, 1)

    def gate(self, x):
        a, b = x.chunk(2, dim=1)
        return torch.tanh(a) * F.sigmoid(b)

    def forward(self, v, h):
        hv = self.v(v)[:, :, : v.size(-1), :]
        ov = self.gate(hv)
        hh = self.h(h)[:, :, :, : h.size(-2)]
        out = self.gate(self.v2h(hv) + hh)
        return ov, h + self.o(out)


torch.manual_seed(0)
fm = 8
net = nn.Sequential(
    MaskedConv2d('A', 1, fm, 7, 1, 3, bias=False),
    nn.BatchNorm2d(fm),
    nn.ReLU(True),
    MaskedConv2d('B', fm, fm, 7, 1, 3, bias=False),
    nn.BatchNorm2d(fm),
    nn.ReLU(True),
    nn.Conv2d(fm, 16, 1),
)
print(net)
x = torch.rand(8, 1, 12, 12)
opt = optim.Adam(net.parameters())
for ep in range(8):
    net.train(True)
    t = (x.data[:, 0] * 15).long()
    loss = F.cross_entropy(net(x), t)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print('epoch={}; nll_tr={:.7f};'.format(ep, loss.item()))
net.eval()
s = torch.Tensor(2, 1, 6, 6).fill_(0)
with torch.inference_mode():
    for i in range(6):
        for j in range(6):
            out = net(s)
            pr = F.softmax(out[:, :, i, j], 1).data
            s[:, :, i, j] = torch.multinomial(pr, 1).float() / 15.0
print(s[0, 0])
torch.set_printoptions(precision=2, linewidth=100, sci_mode=False)
print(s[1])
g = GatedBlock(8)
e = nn.Conv2d(1, 8, 1)
gx = e(x)
a, b = g(gx, gx)
print(a.shape, b.shape, b.sum().item(), a.std().item())
opt = optim.SGD(
    [{'params': g.parameters()}, {'params': e.parameters(), 'lr': 0.1}], lr=0.01, momentum=0.9, nesterov=True
)
sch = optim.lr_scheduler.CyclicLR(opt, base_lr=[0.01, 0.02], max_lr=[0.1, 0.2], step_size_up=4, cycle_momentum=True)
for k in range(10):
    _, b = g(e(x), e(x))
    l = (b.mean(1, True) - x).pow(2).mean()
    opt.zero_grad()
    l.backward()
    opt.step()
    sch.step()
    print(k, l.item(), sch.get_last_lr())
